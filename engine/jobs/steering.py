"""Start bulk jobs, and pause, resume, abort and repeat them.

Each is one transaction, or part of the caller's, with a row in the audit trail. Lock order: the job, then the instance
that works on it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import F

from engine.jobs import pace, writing
from engine.jobs.actions import REFUSAL, checked
from engine.jobs.actions import START as START_NEW
from engine.jobs.reading import BulkStatus, Job, get, job_of
from engine.jobs.selection import Selection, check_size, selected
from engine.jobs.workflow import BulkParams, bulk
from engine.jobs.writing import instance_of, note, write
from engine.models import BulkItem, BulkJob, Instance
from engine.steer import audit, lifecycle, pauses, restart
from engine.steer.clock import database_time
from engine.values import between_steps
from engine.values.argument import Argument
from engine.values.errors import BulkJobExistsError, BulkJobNotFoundError, InstanceExistsError
from engine.values.identity import check_instance_id, new_instance_id

START = "bulk-start"
PAUSE = writing.PAUSE
RESUME = "bulk-resume"
ABORT = "bulk-abort"
RETRY_FAILED = "bulk-retry-failed"

# One statement: the set is what one snapshot shows, and each item is as it was then. What is skipped at once has the
# time of the job, which the rate leaves out (`engine.jobs.reading`).
_FREEZE = """
    WITH chosen AS ([chosen]), frozen AS (
        INSERT INTO engine_bulk_item
            (job_id, position, instance_key, workflow, instance_id, generation, outcome, code, message, tries, at)
        SELECT job.key, row_number() OVER (ORDER BY i.key), i.key, i.workflow, i.id, i.generation,
            CASE WHEN told.code = '' THEN 'open' ELSE 'skipped' END, told.code, '', 0,
            CASE WHEN told.code = '' THEN NULL ELSE job.created_at END
        FROM chosen i CROSS JOIN engine_bulk_job job CROSS JOIN LATERAL (SELECT [refusal] AS code) AS told
        WHERE job.key = %s
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
    at_once: int | None = None,
    ask_after: int | None = None,
    stop_after: int | None = pace.STOP_AFTER,
    resume_workflows: bool = False,
    id: str | None = None,
    by: object = None,
    reason: str = "",
) -> Job:
    """Do something to all instances that a search finds now, or to these instances, in the background.

    The set is fixed at once: what starts or fails later does not belong to it. `workflows` limits it to those that
    the caller may touch. `rollback` is of the action terminate, and `keys` of restart. With an `id`, which has the form
    of an instance's, repeated calls start one job.

    `at_once`: so many of its instances run at a time. The job pauses itself when `ask_after` are done or have failed,
    and after `stop_after` new failures; `resume` goes on. What was retried, resumed or restarted and fails again is a
    failure. `resume_workflows` ends the pauses of their workflows first.

    Returns the job. Raises BulkJobExistsError for an id in use, InvalidNameError, InvalidQueryError, InvalidValueError,
    and LimitError for more than 100,000 instances; then nothing is written.
    """
    between_steps.refuse("start")
    chosen, arguments = checked(action, {"rollback": rollback, "keys": keys})
    speed, cause = pace.checked(at_once, ask_after, stop_after), audit.Cause.of(by, reason)
    with Argument("id"):
        name = new_instance_id() if id is None else check_instance_id(id)
    found = selected(query, instances, workflows)
    with transaction.atomic():
        row = insert(name, chosen, arguments | speed.arguments(), found.text, cause)
        _freeze(row, found)
        if resume_workflows:
            _resume_workflows(row, by, reason)
        begin(row, cause)
        note(START, row, cause, after=BulkStatus.RUNNING)
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

    A job that starts instances starts those that it could not start; what it has started and has failed is retried by
    another job. Does nothing if there is none, or the job was aborted. Returns the job. Raises BulkJobNotFoundError.
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
            note(verb, row, cause, before=before, after=get(id).status)
        return get(id)


def _pause(row: BulkJob, status: BulkStatus, cause: audit.Cause) -> bool:
    if status != BulkStatus.RUNNING:
        return False
    writing.pause(row, cause)
    return True


def _resume(row: BulkJob, status: BulkStatus, cause: audit.Cause) -> bool:
    if status not in (BulkStatus.PAUSED, BulkStatus.ERRORED):
        return False
    write(row, paused_at=None)
    instance = instance_of(row)
    act = restart.restart if status == BulkStatus.ERRORED else lifecycle.resume
    act(instance, by=cause.actor or None, reason=cause.reason)
    return True


def _abort(row: BulkJob, status: BulkStatus, cause: audit.Cause) -> bool:
    if status in (BulkStatus.COMPLETE, BulkStatus.ABORTED):
        return False
    write(row, aborted_at=database_time(), paused_at=None)
    if status != BulkStatus.ERRORED:
        lifecycle.terminate(instance_of(row), by=cause.actor or None, reason=cause.reason)
    return True


def _retry_failed(row: BulkJob, status: BulkStatus, cause: audit.Cause) -> bool:
    if not row.failed or status == BulkStatus.ABORTED:
        return False
    items = BulkItem.objects.filter(job_id=row.key, outcome="failed")
    if row.action == START_NEW and not (items := items.exclude(new=None)).exists():
        return False
    count = items.update(outcome="open", code="", message="", at=None, tries=0)
    write(row, failed=F("failed") - count, finished_at=None)
    if status in (BulkStatus.COMPLETE, BulkStatus.ERRORED):
        restart.restart(instance_of(row), by=cause.actor or None, reason=cause.reason)
    return True


def insert(id: str, action: str, arguments: dict[str, Any], query: str, cause: audit.Cause) -> BulkJob:
    """Insert the job. Waits for a transaction that has inserted the same id. Raises BulkJobExistsError."""
    try:
        with transaction.atomic():
            return BulkJob.objects.create(
                id=id,
                action=str(action),
                arguments=arguments,
                query=query,
                actor=cause.actor,
                user_key=cause.user_key,
                reason=cause.reason,
            )
    except IntegrityError:
        if BulkJob.objects.filter(id=id).exists():
            raise BulkJobExistsError(id) from None
        raise


def begin(row: BulkJob, cause: audit.Cause) -> None:
    """Start the instance that works on the job. Raises BulkJobExistsError."""
    try:
        bulk.start(BulkParams(job=row.key), id=row.id, by=cause.actor or None)
    except InstanceExistsError:  # of a job whose own row is deleted already
        raise BulkJobExistsError(row.id) from None


def _resume_workflows(row: BulkJob, by: object, reason: str) -> None:
    """End the pauses of the workflows of the open items, in their order, so that two who do it do not deadlock."""
    items = BulkItem.objects.filter(job_id=row.key, outcome="open")
    names = items.order_by("workflow").values_list("workflow", flat=True).distinct()
    for one in pauses.paused(names):
        pauses.resume(one.workflow, by=by, reason=reason)


def _freeze(row: BulkJob, found: Selection) -> None:
    statement = _FREEZE.replace("[chosen]", found.sql).replace("[refusal]", REFUSAL[row.action])
    with connection.cursor() as cursor:
        cursor.execute(statement, [*found.params, row.key])
        total, skipped = cursor.fetchone()
    check_size(total)
    write(row, total=total, skipped=skipped)
    row.total = total
