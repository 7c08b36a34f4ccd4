"""What schedules started in a week, and which starts were refused: read within bounds, however much there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from engine.models import Audit, Instance, ScheduleRow
from engine.status.search import LONGEST_TRANSACTION, first_key
from engine.steer.schedules import REFUSED, starter
from engine.values.shown import display_status

MOST_RUNS = 12_000  # of all schedules, the newest: a schedule of every minute has 10,080 in a week
MOST_AUDITED = 20_000  # rows of the audit trail, the newest
QUARTER = 900  # seconds: an hour of any time zone begins with one

# By the index of what somebody started of each workflow, which has the keys in order. They are almost in the order of
# the starts, so the week is a range of them.
_RAN = """
WITH plan AS (
    SELECT * FROM unnest(%(workflows)s::text[], %(starters)s::text[]) AS plan(workflow, starter)
), newest AS MATERIALIZED (
    SELECT plan.workflow, plan.starter, run.key FROM plan
     CROSS JOIN LATERAL (
           SELECT i.key FROM engine_instance i
            WHERE i.started_by = plan.starter AND i.started_by <> '' AND i.workflow = plan.workflow
              AND i.key >= %(low)s AND i.key < %(top)s
            ORDER BY i.key DESC LIMIT %(cap)s) AS run
     ORDER BY run.key DESC LIMIT %(cap)s
)
SELECT newest.workflow, newest.starter, floor(extract(epoch FROM i.created_at) / %(quarter)s)::bigint,
       i.status, i.waiting_for, count(*), min(i.created_at), min(i.id), max(i.key),
       (SELECT count(*) FROM newest)
  FROM newest JOIN engine_instance i ON i.key = newest.key
 WHERE i.created_at >= %(first)s AND i.created_at < %(end)s
 GROUP BY 1, 2, 3, 4, 5
"""
_REFUSED = """
SELECT newest.workflow, newest.data ->> 'schedule', newest.data ->> 'planned_at', newest.reason
  FROM (SELECT workflow, verb, data, reason FROM engine_audit WHERE key >= %(low)s AND key < %(top)s
         ORDER BY key DESC LIMIT %(cap)s) AS newest
 WHERE newest.verb = %(verb)s AND newest.workflow = ANY (%(workflows)s)
"""


@dataclass(frozen=True, slots=True)
class Runs:
    """Instances that a schedule started within a quarter of an hour, and that have one shown status."""

    workflow: str
    starter: str
    status: str
    count: int
    first: datetime
    id: str  # of one of them
    newest: int  # the key of the newest


@dataclass(frozen=True, slots=True)
class Refused:
    """A planned start that was refused, and why."""

    workflow: str
    schedule: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Past:
    """What happened in a week. `is_cut`: there is more, which is older."""

    runs: tuple[Runs, ...]
    refused: tuple[Refused, ...]
    is_cut: bool = False


def read(rows: Sequence[ScheduleRow], first: datetime, end: datetime) -> Past:
    """Read what these schedules did between two moments."""
    low, top = _span(Instance, "created_at", first, end)
    values = {"workflows": [row.workflow for row in rows], "starters": [starter(row) for row in rows]}
    bounds = {"low": low, "top": top, "first": first, "end": end, "cap": MOST_RUNS, "quarter": QUARTER}
    found = _ask(_RAN, **values, **bounds)
    runs = tuple(
        Runs(workflow, by, display_status(status, waiting_for), count, at, of, newest)
        for workflow, by, _, status, waiting_for, count, at, of, newest, _ in found
    )
    return Past(runs, tuple(_refused(rows, first, end)), any(row[-1] >= MOST_RUNS for row in found))


def _refused(rows: Sequence[ScheduleRow], first: datetime, end: datetime) -> Iterator[Refused]:
    names = {(row.workflow, row.name) for row in rows}
    low, top = _span(Audit, "at", first, end)
    workflows = sorted({row.workflow for row in rows})
    for workflow, name, planned_at, reason in _ask(
        _REFUSED, low=low, top=top, cap=MOST_AUDITED, verb=REFUSED, workflows=workflows
    ):
        at = datetime.fromisoformat(planned_at).astimezone(UTC)
        if (workflow, name) in names and first <= at < end:
            yield Refused(workflow, name, at, reason)


def _span(model: Any, column: str, first: datetime, end: datetime) -> tuple[int, int]:
    low = first_key(model, column, first - LONGEST_TRANSACTION)
    return low, first_key(model, column, end + LONGEST_TRANSACTION + timedelta(seconds=1))


def _ask(statement: str, **values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
