"""Start bulk jobs, and pause, resume, abort and repeat them.

Each is one transaction, or part of the caller's, with a row in the audit trail. Lock order: the job, then the instance
that works on it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import F

from engine.jobs.actions import REFUSAL, BulkAction, checked
from engine.jobs.reading import BulkStatus, Job, get, job_of
from engine.jobs.selection import Selection, check_size, selected
from engine.jobs.workflow import NAME, BulkParams, bulk
from engine.models import BulkItem, BulkJob, Instance
from engine.steer import audit, lifecycle, notify, restart
from engine.steer.clock import database_time
from engine.values import between_steps
from engine.values.errors import BulkJobNotFoundError
from engine.values.identity import new_instance_id

START = "bulk-start"
PAUSE = "bulk-pause"
RESUME = "bulk-resume"
ABORT = "bulk-abort"
RETRY_FAILED = "bulk-retry-failed"

# One statement: the set is what one snapshot shows, and each item is as it was then.
_FREEZE = """
    WITH chosen AS ([chosen]), frozen AS (
        INSERT INTO engine_bulk_item
            (job_id, position, instance_key, workflow, instance_id, generation, outcome, code, message, tries, at)
        SELECT %s, row_number() OVER (ORDER BY i.key), i.key, i.workflow, i.id, i.generation,
            CASE WHEN told.code = '' THEN 'open' ELSE 'skipped' END, told.code, '', 0,
            CASE WHEN told.code = '' THEN NULL ELSE statement_timestamp() END
        FROM chosen i CROSS JOIN LATERAL (SELECT [refusal] AS code) AS told
        RETURNING outcome
    )
    SELECT count(*), count(*) FILTER (WHERE outcome = 'skipped') FROM frozen
"""


def start(
    action: str,
    query: str | None = None,
    *,
    instances: Iterable[Instance] | None = None,
    workflows: Collection[str] | None = None,
    rollback: bool | None = None,
    keys: str | None = None,
    by: object = None,
    reason: str = "",
) -> Job:
    """Do something to all instances that a search finds now, or to these instances, in the background.

    The set is fixed at once: what starts or fails later does not belong to it. `workflows` limits it to those that
    the caller may touch. `rollback` is of the action terminate, and `keys` of restart.

    Returns the job. Raises InvalidQueryError, InvalidValueError, and LimitError for more than 100,000 instances; then
    nothing is written.
    """
    between_steps.refuse("start")
    found = selected(query, instances, workflows)
    return _start(new_instance_id(), checked(action, {"rollback": rollback, "keys": keys}), found, by, reason)


def start_once(
    id: str,
    action: str,
    query: str | None = None,
    *,
    instances: Iterable[Instance] | None = None,
    workflows: Collection[str] | None = None,
    rollback: bool | None = None,
    keys: str | None = None,
    by: object = None,
    reason: str = "",
) -> Job:
    """Do as `start`, with an id from the caller; return the job that has this id if there is one already."""
    wanted = checked(action, {"rollback": rollback, "keys": keys})
    found = selected(query, instances, workflows)
    try:
        with transaction.atomic():
            return _start(id, wanted, found, by, reason)
    except IntegrityError:
        return get(id)


def _start(
    id: str, wanted: tuple[BulkAction, dict[str, Any]], found: Selection, by: object, reason: str
) -> Job:
    (chosen, arguments), cause = wanted, audit.Cause.of(by, reason)
    with transaction.atomic():
        row = BulkJob.objects.create(
            id=id,
            action=str(chosen),
            arguments=arguments,
            query=found.text,
            actor=cause.actor,
            user_key=cause.user_key,
            reason=cause.reason,
        )
        _freeze(row, found)
        bulk.start(BulkParams(job=row.key), id=row.id, by=cause.actor or None)
        _note(START, row, cause, after=BulkStatus.RUNNING)
        return get(row.id)


def pause(id: str, *, by: object = None, reason: str = "") -> Job:
    """Do no further items, as soon as the current batch has ended, until the job is resumed.

    Does nothing if there is nothing to pause. Returns the job. Raises BulkJobNotFoundError.
    """
    return _change(id, PAUSE, _pause, audit.Cause.of(by, reason))


def resume(id: str, *, by: object = None, reason: str = "") -> Job:
    """Continue with the open items after a pause, or after the job itself has failed.

    Does nothing if there is nothing to resume. Returns the job. Raises BulkJobNotFoundError.
    """
    return _change(id, RESUME, _resume, audit.Cause.of(by, reason))


def abort(id: str, *, by: object = None, reason: str = "") -> Job:
    """End the job. What it has done stays done; a batch that is not committed does nothing.

    Does nothing if it has ended. Returns the job. Raises BulkJobNotFoundError.
    """
    return _change(id, ABORT, _abort, audit.Cause.of(by, reason))


def retry_failed(id: str, *, by: object = None, reason: str = "") -> Job:
    """Do the failed items again. Their instances must not have been restarted since the job was started.

    Does nothing if none has failed, or the job was aborted. Returns the job. Raises BulkJobNotFoundError.
    """
    return _change(id, RETRY_FAILED, _retry_failed, audit.Cause.of(by, reason))


Change = Callable[[BulkJob, BulkStatus, audit.Cause], bool]


def _change(id: str, verb: str, change: Change, cause: audit.Cause) -> Job:
    between_steps.refuse(verb.removeprefix("bulk-").replace("-", "_"))
    with transaction.atomic():
        row = BulkJob.objects.select_for_update(no_key=True).filter(id=id).first()
        if row is None:
            raise BulkJobNotFoundError(id)
        before = job_of(row).status
        if change(row, before, cause):
            _note(verb, row, cause, before=before, after=get(id).status)
        return get(id)


def _pause(row: BulkJob, status: BulkStatus, cause: audit.Cause) -> bool:
    if status != BulkStatus.RUNNING:
        return False
    _write(row, paused_at=database_time())
    lifecycle.pause(_instance(row), by=cause.actor or None, reason=cause.reason)
    return True


def _resume(row: BulkJob, status: BulkStatus, cause: audit.Cause) -> bool:
    if status not in (BulkStatus.PAUSED, BulkStatus.ERRORED):
        return False
    _write(row, paused_at=None)
    instance = _instance(row)
    act = restart.restart if status == BulkStatus.ERRORED else lifecycle.resume
    act(instance, by=cause.actor or None, reason=cause.reason)
    return True


def _abort(row: BulkJob, status: BulkStatus, cause: audit.Cause) -> bool:
    if status in (BulkStatus.COMPLETE, BulkStatus.ABORTED):
        return False
    _write(row, aborted_at=database_time(), paused_at=None)
    if status != BulkStatus.ERRORED:
        lifecycle.terminate(_instance(row), by=cause.actor or None, reason=cause.reason)
    return True


def _retry_failed(row: BulkJob, status: BulkStatus, cause: audit.Cause) -> bool:
    if not row.failed or status == BulkStatus.ABORTED:
        return False
    items = BulkItem.objects.filter(job_id=row.key, outcome="failed")
    count = items.update(outcome="open", code="", message="", at=None, tries=0)
    _write(row, failed=F("failed") - count, finished_at=None)
    if status in (BulkStatus.COMPLETE, BulkStatus.ERRORED):
        restart.restart(_instance(row), by=cause.actor or None, reason=cause.reason)
    return True


def _freeze(row: BulkJob, found: Selection) -> None:
    statement = _FREEZE.replace("[chosen]", found.sql).replace("[refusal]", REFUSAL[row.action])
    with connection.cursor() as cursor:
        cursor.execute(statement, [*found.params, row.key])
        total, skipped = cursor.fetchone()
    check_size(total)
    _write(row, total=total, skipped=skipped)
    row.total = total


def _instance(row: BulkJob) -> Instance:
    """Return the instance that works on the job."""
    found: Instance = Instance.objects.get(workflow=NAME, id=row.id)
    return found


def _write(row: BulkJob, **changes: Any) -> None:
    BulkJob.objects.filter(key=row.key).update(**changes)
    notify.changed_elsewhere()


def _note(verb: str, row: BulkJob, cause: audit.Cause, *, before: str = "", after: str = "") -> None:
    data = {"bulk": row.id, "action": str(row.action), "query": row.query, "total": row.total}
    audit.note(verb, "", cause, before=before, after=after, data=data)
