"""How fast a bulk job goes, and when it pauses itself so that somebody looks.

What is retried or started may fail. Before each batch, the job looks again at the latest instances that it let go on
or has started: one that has failed counts as failed, and those that still run hold others back. It looks at so many at
most, so that a batch of a large job costs as much as one of a small job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.db import connection
from django.db.models import F

from engine.jobs.actions import START, BulkAction
from engine.jobs.reasons import FAILED_AGAIN, HAS_FAILED
from engine.models import Audit, BulkItem, BulkJob, Instance
from engine.steer.clock import database_time
from engine.values.argument import Argument
from engine.values.errors import InvalidValueError

KEY = "pace"  # in the arguments of a job
STOP_AFTER = 5
MOST = 1_000_000  # of what is counted
MOST_AT_ONCE = 500
LATEST = MOST_AT_ONCE  # items that are looked at again

# What goes on, or begins, by these may fail.
GO_ON = (BulkAction.RETRY, BulkAction.RESUME, BulkAction.RESTART, START)

_LATEST = f"""
    SELECT position, instance_key FROM engine_bulk_item
    WHERE job_id = %(job)s AND at IS NOT NULL AND outcome = 'done' ORDER BY at DESC LIMIT {LATEST}
"""  # noqa: S608 - a constant of ours
_UNDER_WAY = f"""
    SELECT count(*) FROM ({_LATEST}) AS latest JOIN engine_instance i ON i.key = latest.instance_key
    WHERE i.status = 'running' OR i.status = 'waiting' AND i.waiting_for = 'retry'
       OR i.status = 'queued' AND (i.starts_at IS NULL OR i.starts_at <= clock_timestamp())
"""  # noqa: S608
# An instance whose rollback was retried ends as errored, too, when the rollback has succeeded.
_HAS_FAILED = """
    (i.status IN ('errored', 'terminated') AND i.rollback = 'failed'
     OR i.status = 'paused' AND i.pause_reason IS NOT NULL
     OR i.status = 'errored' AND NOT (i.rollback = 'complete' AND EXISTS (
        SELECT FROM engine_audit a
        WHERE a.instance_key = i.key AND a.verb = 'retry_rollback' AND a.outcome = 'done' AND a.at >= %(since)s)))
"""
# With its generation of now, so that the job can retry it.
_FAILED_AGAIN = f"""
    UPDATE engine_bulk_item item
    SET outcome = 'failed', code = %(code)s, generation = i.generation, at = %(now)s
    FROM ({_LATEST}) AS latest JOIN engine_instance i ON i.key = latest.instance_key
    WHERE item.job_id = %(job)s AND item.position = latest.position AND item.outcome = 'done'
      AND {_HAS_FAILED}
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a job goes, and when it pauses itself. None: without such a limit."""

    at_once: int | None = None
    """So many of its instances run at a time."""
    ask_after: int | None = None
    """It pauses when so many were done or failed, until it is resumed."""
    stop_after: int | None = None
    """It pauses after so many failures since its start, or since it was resumed."""

    @classmethod
    def of(cls, job: BulkJob) -> Pace:
        return cls(**job.arguments.get(KEY, {}))

    def arguments(self) -> dict[str, Any]:
        """Return it as it is stored with the arguments of the action."""
        return {KEY: asdict(self)}


def checked(at_once: int | None, ask_after: int | None, stop_after: int | None) -> Pace:
    """Return the pace. Raises InvalidValueError."""
    given = {
        "at_once": (at_once, MOST_AT_ONCE),
        "ask_after": (ask_after, MOST),
        "stop_after": (stop_after, MOST),
    }
    for name, (value, most) in given.items():
        with Argument(name):
            if value is not None and (type(value) is not int or not 0 < value <= most):
                rule = f"It must be a whole number from 1 to {most:,}."
                raise InvalidValueError("$", "out_of_range", rule, what=name, problem="is not valid")
    return Pace(at_once, ask_after, stop_after)


def without(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the action alone."""
    return {name: value for name, value in arguments.items() if name != KEY}


def count_failed_again(job: BulkJob) -> None:
    """Count those of the latest instances as failed that were let go on, and have failed again."""
    if job.action not in GO_ON:
        return
    values: dict[str, Any] = {
        "job": job.key,
        "now": database_time(),
        "since": job.created_at,
        "code": HAS_FAILED if job.action == START else FAILED_AGAIN,
    }
    with connection.cursor() as cursor:
        cursor.execute(_FAILED_AGAIN, values)
        count = cursor.rowcount
    if count:
        BulkJob.objects.filter(key=job.key).update(done=F("done") - count, failed=F("failed") + count)


def free(job: BulkJob, most: int) -> int:
    """Return how many items may be done now, up to `most`."""
    pace = Pace.of(job)
    if pace.at_once is not None:
        most = min(most, max(0, pace.at_once - _under_way(job)))
    tried = job.done + job.failed
    if pace.ask_after is not None and tried < pace.ask_after:
        most = min(most, pace.ask_after - tried)
    return most


def _under_way(job: BulkJob) -> int:
    if job.action not in GO_ON:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(_UNDER_WAY, {"job": job.key})
        (count,) = cursor.fetchone()
    return int(count)


def reason_to_pause(before: BulkJob, after: BulkJob, instance: Instance) -> str:
    """Return why the job pauses itself after a batch, as a sentence; empty if it goes on."""
    pace = Pace.of(after)
    if pace.stop_after is not None and after.failed > before.failed:
        failed = _failures_since(after, instance)
        if failed >= pace.stop_after:
            return f"{failed:,} new failure{'s' * (failed != 1)}. Resume the job to go on."
    if (
        pace.ask_after is not None
        and before.done + before.failed < pace.ask_after <= after.done + after.failed
    ):
        tried = "has" if pace.ask_after == 1 else f"{pace.ask_after:,} have"
        return f"The first {tried} been tried. Resume the job to go on."
    return ""


def _failures_since(job: BulkJob, instance: Instance) -> int:
    """Count the failures since somebody resumed the job, or else since its start."""
    resumed = Audit.objects.filter(instance_key=instance.key, verb__in=("resume", "restart"), outcome="done")
    since = resumed.order_by("-key").values_list("at", flat=True).first() or job.created_at
    return BulkItem.objects.filter(job_id=job.key, outcome="failed", at__gt=since).count()
