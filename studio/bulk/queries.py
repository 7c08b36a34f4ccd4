"""What the pages of bulk jobs read. A job is for those who may see the workflows of all its instances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from engine.bulk import BulkStatus, Job
from engine.jobs.actions import START
from engine.jobs.reading import job_of
from engine.jobs.reasons import in_words
from engine.jobs.workflow import NAME
from engine.models import Audit, BulkItem, BulkJob, Instance
from studio.bulk.wording import done_words, look_of
from studio.instances.queries import Row, rows_by_key, rows_of
from studio.instances.visibility import workflows_of_user

PAGE = 50
TOLD = 20
METER = 1_000  # its width


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job, as the pages show it."""

    key: int
    job: Job

    @property
    def look(self) -> str:
        """The status that its chip looks like."""
        return look_of(self.job)

    @property
    def title(self) -> str:
        return (
            f"{self.job.action.capitalize()} {self.job.total:,} instance{'' if self.job.total == 1 else 's'}"
        )

    @property
    def starts(self) -> bool:
        """Whether it starts its instances."""
        return self.job.action == START

    @property
    def may_retry(self) -> bool:
        """Whether what failed can be done again by it. What it has started and has failed is retried by other means."""
        return self.job.failed > 0 and not self.starts and self.job.status != BulkStatus.ABORTED

    @property
    def is_open(self) -> bool:
        return self.job.status in (BulkStatus.RUNNING, BulkStatus.PAUSED, BulkStatus.ERRORED)

    @property
    def arguments(self) -> list[str]:
        """What it does beside the usual, in words."""
        return done_words(self.job)

    @property
    def meter(self) -> list[tuple[str, int, int]]:
        """The parts of its meter: the outcome, and where it begins and how wide it is."""
        counts = (("done", self.job.done), ("failed", self.job.failed), ("skipped", self.job.skipped))
        parts, at = list[tuple[str, int, int]](), 0
        for name, count in counts:
            # A few must not be too narrow to be seen.
            width = max(METER * count // max(self.job.total, 1), 6 if count else 0)
            width = min(width, METER - at)
            if width:
                parts.append((name, at, width))
            at += width
        return parts

    @property
    def rate(self) -> str:
        """How fast it is, such as `12 a second`; empty if unknown."""
        rate = self.job.rate
        if not rate or not self.job.done + self.job.failed:  # what is skipped at the start says nothing
            return ""
        return f"{rate:,.0f} a second" if rate >= 1 else f"{rate * 60:,.0f} a minute"

    @property
    def took(self) -> timedelta | None:
        return self.job.ended_at - self.job.created_at if self.job.ended_at else None

    @property
    def ends_in(self) -> timedelta | None:
        return self.job.ends_in if self.job.left and self.rate else None


@dataclass(frozen=True, slots=True)
class ItemRow:
    """An instance of a job: what became of it, and the row of the instance, None if it was deleted."""

    item: BulkItem
    message: str
    row: Row | None


@dataclass(frozen=True, slots=True)
class JobsPage:
    rows: list[JobRow]
    older: str
    top: int


def visible_jobs(user: Any) -> QuerySet[BulkJob]:
    """Return the jobs that a user may see."""
    workflows = workflows_of_user(user)
    rows = BulkJob.objects.all()
    if workflows is None:
        return rows
    others = BulkItem.objects.filter(job_id=OuterRef("key")).exclude(workflow__in=workflows)
    return rows.filter(~Exists(others))


def jobs_page(user: Any, before: int | None) -> JobsPage:
    """Read a page of the list, the newest first."""
    rows = visible_jobs(user).order_by("-key")
    if before is not None:
        rows = rows.filter(key__lt=before)
    found = list(rows[: PAGE + 1])
    shown = found[:PAGE]
    older = str(shown[-1].key) if len(found) > PAGE else ""
    return JobsPage(job_rows(shown), older, shown[0].key if shown else 0)


def jobs_by_key(user: Any, keys: Sequence[int]) -> list[JobRow]:
    """Read the jobs that a page shows, in its order."""
    found = visible_jobs(user).in_bulk(keys)
    return job_rows(found[key] for key in keys if key in found)


def job_rows(rows: Iterable[BulkJob]) -> list[JobRow]:
    return [JobRow(row.key, job_of(row)) for row in rows]


def find(id: str, user: Any) -> JobRow | None:
    """Return a job that the user may see; None for any other."""
    row = visible_jobs(user).filter(id=id).first()
    return JobRow(row.key, job_of(row)) if row is not None else None


def workflows_of(key: int) -> list[str]:
    """Return the workflows of the instances of a job."""
    rows = BulkItem.objects.filter(job_id=key).order_by("workflow")
    return list(rows.values_list("workflow", flat=True).distinct())


def items_page(key: int, outcome: str, after: int) -> tuple[list[ItemRow], str]:
    """Read a page of the instances of a job, and the place of the next one, empty if there is none."""
    rows = BulkItem.objects.filter(job_id=key, position__gt=after)
    if outcome:
        rows = rows.filter(outcome=outcome)
    found = list(rows.order_by("position")[: PAGE + 1])
    shown = found[:PAGE]
    instances = rows_by_key([item.instance_key for item in shown if item.instance_key is not None])
    by_key = {row.instance.key: row for row in rows_of(instances)}
    items = [
        ItemRow(one, one.message or in_words(one.code), by_key.get(one.instance_key or 0)) for one in shown
    ]
    return items, str(shown[-1].position) if len(found) > PAGE else ""


def told(id: str) -> list[Audit]:
    """Return what people did to a job, the newest first, from the audit trail of the instance that works on it."""
    key = Instance.objects.filter(workflow=NAME, id=id).values_list("key", flat=True).first()
    if key is None:
        return []
    return list(Audit.objects.filter(instance_key=key, outcome="done").order_by("-key")[:TOLD])
