"""One batch of a bulk job: the body of an atomic step.

What it does to its instances, their results and the step's own completion are one transaction. A worker that is killed
leaves nothing of it, or all of it.

Lock order: the job if what it has done has failed again, instances by ascending key, the job, and at the end the
instance of the job itself. Whoever holds an instance of a job never waits for the job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models import F

from engine.jobs import pace, writing
from engine.jobs.actions import REFUSAL, START, perform
from engine.jobs.new_items import start_items
from engine.jobs.reasons import LOCKED, NOT_FOUND, SKIPS, STALE
from engine.models import BulkItem, BulkJob, Instance
from engine.steer import audit
from engine.steer.clock import database_time
from engine.values.errors import RepriseError

SIZE = 50
MOST_TRIES = 6  # of an instance that others hold: with the pauses between them, about a minute
LONGEST_MESSAGE = 2_000

# A statement of an item may need rows of other instances, such as its children. It waits for them this long.
_PATIENCE = "SELECT set_config('lock_timeout', '2s', true)"
_NEXT = """
    SELECT position, instance_key, generation, tries FROM engine_bulk_item
    WHERE job_id = %s AND outcome = 'open' ORDER BY tries, position LIMIT %s
"""
_LOCK = """
    SELECT i.key, i.generation, [refusal] FROM engine_instance i
    WHERE i.key = ANY (%s) ORDER BY i.key FOR NO KEY UPDATE OF i SKIP LOCKED
"""
_RECORD = """
    UPDATE engine_bulk_item item SET outcome = new.outcome, code = new.code, message = new.message, at = %s
    FROM unnest(%s::integer[], %s::text[], %s::text[], %s::text[]) AS new (position, outcome, code, message)
    WHERE item.job_id = %s AND item.position = new.position AND item.outcome = 'open'
"""


@dataclass(frozen=True, slots=True)
class Batch:
    """What a batch has left to do."""

    is_last: bool
    wait: int = 0
    """Seconds until the next batch, because others hold all that is left."""
    is_idle: bool = False
    """Whether nothing was done, because as many as allowed are under way."""


@dataclass(frozen=True, slots=True)
class _Open:
    position: int
    key: int
    generation: int
    tries: int


@dataclass(frozen=True, slots=True)
class _Result:
    position: int
    outcome: str
    code: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class _Author:
    """The actor of a job, as the functions that write the audit trail take it."""

    audit_name: str
    pk: str | None


def run(job: int) -> Batch:
    """Do the next items of a job."""
    before = BulkJob.objects.get(key=job)
    pace.count_failed_again(before)
    if _pauses_itself(before):
        return Batch(is_last=False)
    row = BulkJob.objects.get(key=job)
    size = pace.free(row, SIZE)
    with connection.cursor() as cursor:
        cursor.execute(_PATIENCE)
        cursor.execute(_NEXT, [job, size])
        items = [_Open(*found) for found in cursor.fetchall()]
    results = list(_started(row, items) if row.action == START else _results(row, items))
    _record(row, results)
    _try_later(row, {one.position for one in items} - {one.position for one in results})
    found = _finish(row, is_idle=not size)
    if not found.is_last:
        _pauses_itself(row)
    return found


def _pauses_itself(before: BulkJob) -> bool:
    """Pause the job if its pace says so, and return whether it did. `before` is the job as it was."""
    after = BulkJob.objects.get(key=before.key)
    why = pace.reason_to_pause(before, after, writing.instance_of(after))
    if why:
        cause = audit.Cause(reason=why)
        writing.pause(after, cause)
        writing.note(writing.PAUSE, after, cause, before="running", after="paused")
    return bool(why)


def _started(job: BulkJob, items: Sequence[_Open]) -> Iterator[_Result]:
    return (_Result(*told) for told in start_items(job, [one.position for one in items]))


def _results(job: BulkJob, found: Sequence[_Open]) -> Iterator[_Result]:
    """Do the items, in the order of their keys. Yield nothing for those that others hold."""
    items = sorted(found, key=lambda one: one.key)
    keys = [one.key for one in items]
    with connection.cursor() as cursor:
        cursor.execute(_LOCK.replace("[refusal]", REFUSAL[job.action]), [keys])
        locked = {key: (generation, refusal) for key, generation, refusal in cursor.fetchall()}
    rows: Mapping[int, Instance] = Instance.objects.defer("params", "output", "error").in_bulk(keys)
    for item in items:
        if item.key not in rows:
            yield _Result(item.position, "skipped", NOT_FOUND)
        elif item.key in locked:
            generation, refusal = locked[item.key]
            if generation != item.generation:
                yield _Result(item.position, "skipped", STALE)
            elif refusal:
                yield _Result(item.position, "skipped", refusal)
            elif (result := _do(job, item, rows[item.key])) is not None:
                yield result
        elif item.tries + 1 >= MOST_TRIES:
            yield _Result(item.position, "failed", LOCKED)


def _do(job: BulkJob, item: _Open, row: Instance) -> _Result | None:
    """Do one item. Return None if it needs rows that others hold, and may be tried again."""
    author = _Author(job.actor, job.user_key or None) if job.actor else None
    try:
        with transaction.atomic():
            perform(job.action, pace.without(job.arguments), row, by=author, reason=job.reason)
    except OperationalError as error:
        if not _is_about_locks(error):
            raise
        return None if item.tries + 1 < MOST_TRIES else _Result(item.position, "failed", LOCKED)
    except RepriseError as error:
        if type(error) in SKIPS:
            return _Result(item.position, "skipped", SKIPS[type(error)])
        return _failure(item, error)
    except Exception as error:  # one instance that cannot be changed must not hold up the others
        if connection.connection is None or connection.connection.closed:
            raise
        return _failure(item, error)
    return _Result(item.position, "done")


def _failure(item: _Open, error: Exception) -> _Result:
    message = str(error).replace("\0", "")[:LONGEST_MESSAGE]
    return _Result(item.position, "failed", type(error).__name__[:64], message)


def _is_about_locks(error: OperationalError) -> bool:
    """Return whether a lock was not free in time, or two transactions waited for each other."""
    return getattr(error.__cause__, "sqlstate", None) in ("55P03", "40P01")


def _record(job: BulkJob, results: Sequence[_Result]) -> None:
    values: list[Any] = [
        database_time(),
        [one.position for one in results],
        [one.outcome for one in results],
        [one.code for one in results],
        [one.message for one in results],
        job.key,
    ]
    with connection.cursor() as cursor:
        cursor.execute(_RECORD, values)
        assert cursor.rowcount == len(results), "an item of the batch was no longer open"
    counts = Counter(one.outcome for one in results)
    changes = {name: F(name) + counts[name] for name in ("done", "skipped", "failed")}
    BulkJob.objects.filter(key=job.key).update(**changes)


def _try_later(job: BulkJob, positions: set[int]) -> None:
    if positions:
        BulkItem.objects.filter(job_id=job.key, position__in=positions).update(tries=F("tries") + 1)


def _finish(job: BulkJob, *, is_idle: bool) -> Batch:
    """End the job if nothing is open. Its row is locked, so nothing can be opened again meanwhile."""
    left = BulkItem.objects.filter(job_id=job.key, outcome="open").order_by("tries", "position")
    tries = left.values_list("tries", flat=True).first()
    if tries is None:
        BulkJob.objects.filter(key=job.key).update(finished_at=database_time())
        return Batch(is_last=True)
    return Batch(is_last=False, wait=2**tries if tries and not is_idle else 0, is_idle=is_idle)
