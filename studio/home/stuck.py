"""What runs far longer than usual, and what no worker takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.urls import reverse

from engine.status.facts import Servers
from engine.status.sentences.sentence import Moment
from engine.status.usual import LongStep, long_steps
from engine.values.durations import format_duration
from studio.display.at_least import counted
from studio.home.group import Block, Group, Hour, Rank, Share, shares_of

MOST = 500  # running instances: workers hold no more than their slots
CAP = 1_001
PATIENCE = timedelta(seconds=30)  # for which something may wait while workers restart
HOUR = timedelta(hours=1)

_RUNNING = """
WITH held AS MATERIALIZED (
    SELECT i.key, i.workflow, i.id, i.started_by, i.status FROM engine_instance i WHERE i.owner IS NOT NULL
)
SELECT key, workflow, id, started_by FROM held
 WHERE status = 'running' AND workflow = ANY (%(names)s) ORDER BY key LIMIT %(most)s
"""
_DUE = """
SELECT name.workflow, count(*), min(due.wake_at), count(*) FILTER (WHERE due.wake_at > %(hour)s)
  FROM unnest(%(names)s::text[]) AS name(workflow)
 CROSS JOIN LATERAL (
       SELECT i.wake_at[of] FROM engine_instance i
        WHERE i.workflow = name.workflow AND i.owner IS NULL AND i.wake_at <= %(until)s
        ORDER BY i.wake_at LIMIT %(cap)s) AS due
[which] GROUP BY 1
"""
_ALL_DUE = _DUE.replace("[of]", "").replace("[which]", "")
_OWN_DUE = _DUE.replace("[of]", ", i.started_by").replace("[which]", " WHERE due.started_by = %(person)s\n")


@dataclass(frozen=True, slots=True)
class Long:
    """An instance whose step runs far longer than usual."""

    workflow: str
    id: str
    started_by: str
    step: LongStep


@dataclass(frozen=True, slots=True)
class Unserved:
    """What waits of a workflow that no worker serves."""

    workflow: str
    count: int
    since: datetime
    in_hour: int


def read_long(names: Sequence[str]) -> list[Long]:
    """Read what runs too long, with three queries."""
    rows = _ask(_RUNNING, names=[*names], most=MOST)
    found = long_steps([row[0] for row in rows])
    return [Long(name, one, person, found[key]) for key, name, one, person in rows if key in found]


def read_unserved(
    servers: Mapping[str, Servers], now: datetime, *, person: str | None = None
) -> list[Unserved]:
    """Read what waits for a worker that is not there, or what of it a person has started.

    Without a query if each of these workflows has a worker.
    """
    alone = [name for name, one in servers.items() if not one.count and not one.is_starting]
    if not alone:
        return []
    values = {"names": alone, "person": person, "until": now - PATIENCE, "hour": now - HOUR, "cap": CAP}
    return [Unserved(*row) for row in _ask(_ALL_DUE if person is None else _OWN_DUE, **values)]


def long_blocks(found: Sequence[Long], now: datetime) -> Iterator[Block]:
    """Yield a row for each step that runs far longer than usual."""
    by_step: dict[tuple[str, str], list[Long]] = {}
    for one in found:
        by_step.setdefault((one.workflow, one.step.name), []).append(one)
    for (workflow, name), some in by_step.items():
        yield (_long(workflow, name, some, now),)


def _long(workflow: str, name: str, some: Sequence[Long], now: datetime) -> Group:
    oldest = min(some, key=lambda one: one.step.started_at)
    ran = _roughly(now - oldest.step.started_at)
    usual = _roughly(timedelta(seconds=oldest.step.usual_seconds))
    has = "has been running" if len(some) == 1 else "runs"
    return Group(
        kind="stuck",
        rank=Rank.STUCK,
        key=f"l-{oldest.workflow}-{oldest.id}",
        count=len(some),
        look="running",
        title=f"{name} {has} for {'up to ' if len(some) > 1 else ''}{ran}; usually {usual} at most",
        shares=(Share(workflow, len(some)),),
        line=(),
        since=oldest.step.started_at,
        then=(Moment("ago", oldest.step.started_at),),
        hour=Hour.of(sum(now - one.step.started_at < HOUR for one in some)),
        query=f"status:running workflow:{workflow}",
        only=oldest.id if len(some) == 1 else "",
        step=name,
    )


def unserved_blocks(found: Sequence[Unserved], *, is_anybody: bool) -> Iterator[Block]:
    """Yield one row for all workflows without a worker. `is_anybody`: a worker serves others."""
    if not found:
        return
    shares = shares_of((one.workflow, counted(one.count, CAP)) for one in found)
    which = shares[0].workflow if len(shares) == 1 else f"{len(shares)} workflows"
    since = min(one.since for one in found)
    yield (
        Group(
            kind="unserved",
            rank=Rank.STUCK,
            key="no-worker",
            count=sum(one.count for one in shares),
            look="queued",
            title=f"No worker serves {which}" if is_anybody else "No worker is running",
            shares=shares,
            line=(("due, and not taken",),),
            since=since,
            then=(Moment("ago", since),),
            hour=Hour.of(sum(one.in_hour for one in found)),
            page=reverse("studio:workers"),
        ),
    )


def _roughly(span: timedelta) -> str:
    """Return whole minutes from two minutes on, so that the title changes no more often."""
    minutes = span // timedelta(minutes=1)
    return f"{minutes} min" if 2 <= minutes < 120 else format_duration(span)


def _ask(statement: str, **values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
