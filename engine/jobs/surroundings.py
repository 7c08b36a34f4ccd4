"""What to know before a job is started, beside its preview: the workflows of its instances, and other jobs on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.db import connection

from engine.jobs.actions import REFUSAL, ROLLED_BACK, checked
from engine.jobs.selection import Selection, selected
from engine.models import BulkJob, Instance

MOST_JOBS = 5
MOST_KEYS = 1_000

_WORKFLOWS = """
    SELECT i.workflow, count(*) FROM ([chosen]) AS i WHERE ([refusal]) = ''
    GROUP BY i.workflow ORDER BY count(*) DESC, i.workflow
"""
_ROLLED_BACK = f"""
    SELECT i.key FROM ([chosen]) AS i WHERE ([refusal]) = '{ROLLED_BACK}' ORDER BY i.key LIMIT {MOST_KEYS + 1}
"""  # noqa: S608 - constants of ours
_OVERLAPS = f"""
    SELECT job.id, job.action, count(*) FROM engine_bulk_job job
    JOIN engine_bulk_item item ON item.job_id = job.key AND item.outcome = 'open'
    JOIN ([chosen]) AS i ON i.key = item.instance_key
    WHERE job.finished_at IS NULL AND job.aborted_at IS NULL
    GROUP BY job.key ORDER BY count(*) DESC, job.key LIMIT {MOST_JOBS}
"""  # noqa: S608 - constants of ours


@dataclass(frozen=True, slots=True)
class Overlap:
    """Another job that has not ended, and to how many of the same instances it still has something to do."""

    job: str
    action: str
    count: int


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What there is around the instances of a job."""

    workflows: tuple[tuple[str, int], ...]
    """By workflow, to how many instances the action applies, most first."""
    rolled_back: tuple[int, ...]
    """The keys of those that were rolled back, so that they can be restarted; up to 1,001."""
    overlaps: tuple[Overlap, ...]


def surroundings(
    action: str,
    query: str | None = None,
    *,
    instances: Iterable[Instance] | None = None,
    workflows: Collection[str] | None = None,
) -> Surroundings:
    """Read them for a job that `start` would start with the same arguments. Raises what `preview` raises."""
    chosen, _ = checked(action, {})
    found = selected(query, instances, workflows)
    shares = _rows(_WORKFLOWS.replace("[refusal]", REFUSAL[chosen]), found)
    undone = (
        _rows(_ROLLED_BACK.replace("[refusal]", REFUSAL[chosen]), found)
        if ROLLED_BACK in REFUSAL[chosen]
        else []
    )
    is_any = BulkJob.objects.filter(finished_at=None, aborted_at=None).exists()
    overlaps = _rows(_OVERLAPS, found) if is_any else []
    return Surroundings(
        tuple(shares), tuple(key for (key,) in undone), tuple(Overlap(*one) for one in overlaps)
    )


def _rows(statement: str, found: Selection) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement.replace("[chosen]", found.sql), found.params)
        rows: list[Any] = cursor.fetchall()
    return rows
