"""Read bulk jobs: how far they are, how fast, and what became of each instance."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet

from engine.jobs import pace
from engine.jobs.pace import Pace
from engine.jobs.reasons import in_words
from engine.jobs.workflow import NAME
from engine.models import Audit, BulkItem, BulkJob, Instance
from engine.values import between_steps
from engine.values.errors import BulkJobNotFoundError
from engine.values.states import FINAL

MOST = 1_000  # items or jobs in one page

# From the latest results, so that it says how fast the job is now. Nothing of the last minute: it stands still.
_RATE = """
    SELECT count(*), extract(epoch FROM clock_timestamp() - min(at))::float8 FROM (
        SELECT at FROM engine_bulk_item
        WHERE job_id = %s AND at > clock_timestamp() - interval '1 minute' AND at > %s ORDER BY at DESC LIMIT 1000
    ) AS latest
"""


class BulkStatus(StrEnum):
    """The status of a bulk job."""

    RUNNING = "running"
    """It has open items, or is about to find that it has none. Also while it waits for a worker."""
    PAUSED = "paused"
    """It does nothing until it is resumed."""
    COMPLETE = "complete"
    """No item is open. Some may have failed."""
    ABORTED = "aborted"
    """It was ended before all was done."""
    ERRORED = "errored"
    """It could not go on by itself. `resume` continues it."""


@dataclass(frozen=True, slots=True)
class Job:
    """A bulk job and how far it is."""

    id: str
    """Its id."""
    action: str
    """What it does to each instance."""
    arguments: dict[str, Any]
    """How: `rollback` of terminate, `keys` of restart."""
    pace: Pace
    """How fast, and when it pauses itself."""
    query: str
    """The search that found the instances; empty if they were named."""
    actor: str
    """Who started it."""
    reason: str
    """Why."""
    status: BulkStatus
    """Its status."""
    total: int
    """How many instances it is about."""
    done: int
    """To how many it was done."""
    skipped: int
    """How many it did not apply to."""
    failed: int
    """At how many it failed."""
    created_at: datetime
    """When it was started."""
    paused_at: datetime | None
    """Since when it is paused."""
    pause_reason: str
    """Why it is paused, as a person said or, if it paused itself, in a sentence."""
    ended_at: datetime | None
    """When it ended."""
    rate: float | None
    """Items a second in the last minute; None if it is not running, or nothing was done in that time."""

    @property
    def left(self) -> int:
        """How many items are open."""
        return self.total - self.done - self.skipped - self.failed

    @property
    def ends_in(self) -> timedelta | None:
        """How long it still takes at this rate; None if that is unknown."""
        return timedelta(seconds=self.left / self.rate) if self.rate else None


@dataclass(frozen=True, slots=True)
class Item:
    """An instance of a bulk job, and what became of it."""

    position: int
    """Its number in the job, from 1, in the order in which the instances were started."""
    workflow: str
    """The name of the workflow."""
    id: str
    """The id of the instance."""
    generation: int
    """Its generation when the job was started."""
    outcome: str
    """open, done, skipped or failed."""
    code: str
    """Why it was skipped or failed, as a word: `finished`, or the name of an error."""
    message: str
    """Why, as a sentence."""
    at: datetime | None
    """When that was recorded; None while it is open."""


def get(id: str, *, workflows: Collection[str] | None = None) -> Job:
    """Return a job, if all of its instances are of these workflows. Raises BulkJobNotFoundError."""
    between_steps.refuse("get")
    row = _about_only(workflows).filter(id=id.replace("\0", "")).first()
    if row is None:
        raise BulkJobNotFoundError(id)
    return job_of(row)


def jobs(
    *, limit: int = 50, before: str | None = None, workflows: Collection[str] | None = None
) -> list[Job]:
    """Return the newest jobs, or the newest of those started before the job with this id.

    With `workflows`, only jobs all of whose instances are of these workflows. Raises BulkJobNotFoundError for an
    unknown id.
    """
    between_steps.refuse("jobs")
    rows = _about_only(workflows).order_by("-key")
    if before is not None:
        rows = rows.filter(key__lt=_key(before))
    return [job_of(row) for row in rows[: max(1, min(limit, MOST))]]


def items(id: str, *, outcome: str | None = None, after: int = 0, limit: int = 100) -> list[Item]:
    """Return items of a job in order, of all or with one outcome; `after` is the position of the page before.

    Raises BulkJobNotFoundError.
    """
    between_steps.refuse("items")
    rows = BulkItem.objects.filter(job_id=_key(id), position__gt=after)
    if outcome is not None:
        rows = rows.filter(outcome=outcome)
    page = rows.order_by("position")[: max(1, min(limit, MOST))]
    return [
        Item(
            position=row.position,
            workflow=row.workflow,
            id=row.instance_id,
            generation=row.generation,
            outcome=row.outcome,
            code=row.code,
            message=row.message or in_words(row.code),
            at=row.at,
        )
        for row in page
    ]


def job_of(row: BulkJob) -> Job:
    """Return a row of the table as a job."""
    status = _status(row)
    return Job(
        id=row.id,
        action=row.action,
        arguments=pace.without(row.arguments),
        pace=Pace.of(row),
        query=row.query,
        actor=row.actor,
        reason=row.reason,
        status=status,
        total=row.total,
        done=row.done,
        skipped=row.skipped,
        failed=row.failed,
        created_at=row.created_at,
        paused_at=row.paused_at,
        pause_reason=_pause_reason(row) if status == BulkStatus.PAUSED else "",
        ended_at=row.aborted_at or row.finished_at,
        rate=_rate(row) if status == BulkStatus.RUNNING else None,
    )


def _about_only(workflows: Collection[str] | None) -> QuerySet[BulkJob]:
    """Return jobs all of whose instances are of these workflows; None: of any. What a job is about nobody knows if it
    found no instance."""
    if workflows is None:
        return BulkJob.objects.all()
    items = BulkItem.objects.filter(job_id=OuterRef("key"))
    return BulkJob.objects.filter(Exists(items), ~Exists(items.exclude(workflow__in=[*workflows])))


def _status(row: BulkJob) -> BulkStatus:
    if row.aborted_at is not None:
        return BulkStatus.ABORTED
    if row.finished_at is not None:
        return BulkStatus.COMPLETE
    # Its instance may have been ended, paused or resumed by itself, as any other.
    found = Instance.objects.filter(workflow=NAME, id=row.id).values_list("status", flat=True).first()
    if found is None or found in FINAL:
        return BulkStatus.ERRORED
    return BulkStatus.PAUSED if found in ("paused", "waiting_for_pause") else BulkStatus.RUNNING


def _pause_reason(row: BulkJob) -> str:
    """Return the reason of the last pause of its instance: it has an index, and rows about the job have none."""
    key = Instance.objects.filter(workflow=NAME, id=row.id).values_list("key", flat=True).first()
    pauses = Audit.objects.filter(instance_key=key, verb="pause", outcome="done").order_by("-key")
    return pauses.values_list("reason", flat=True).first() or ""


def _rate(row: BulkJob) -> float | None:
    with connection.cursor() as cursor:
        cursor.execute(_RATE, [row.key, row.created_at])
        count, seconds = cursor.fetchone()
    return count / max(seconds, 1.0) if count else None


def _key(id: str) -> int:
    key = BulkJob.objects.filter(id=id.replace("\0", "")).values_list("key", flat=True).first()
    if key is None:
        raise BulkJobNotFoundError(id)
    return key
