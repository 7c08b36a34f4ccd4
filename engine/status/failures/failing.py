"""What fails now: instances that errored in the last day or wait for a retry, by group, and those of one person apart.

Whatever the tables hold, each query ends after so many rows of an index: one descent for each group of failures, and
the newest instances of each workflow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from engine.status.failures import sql

WINDOW = timedelta(days=1)
HOUR = timedelta(hours=1)
CAP = 1_001  # instances of a group, and of a workflow where each is looked at
MOST = 500  # groups
SOONEST = 20  # keys of those that wait for a retry

# Among the newest of each workflow: what the person started, what could not be rolled back, and what has no group. The
# index of what failed has all of it, and that of what waits the same for retries; the ids are in the rows only.
_ERRORED = """
SELECT name.workflow, coalesce(i.fingerprint, ''), i.started_by = %(person)s AS is_own,
       i.rollback = 'failed' AS is_stuck, count(*), min(i.finished_at),
       count(*) FILTER (WHERE i.finished_at > %(hour)s), max(i.key)
  FROM unnest(%(workflows)s::text[]) AS name(workflow)
 CROSS JOIN LATERAL (
       SELECT i.key, i.fingerprint, i.started_by, i.rollback, i.finished_at FROM engine_instance i
        WHERE i.workflow = name.workflow AND i.status = 'errored' AND i.finished_at > %(since)s
        ORDER BY i.finished_at DESC LIMIT %(cap)s) AS i
 WHERE i.started_by = %(person)s OR i.rollback = 'failed' OR i.fingerprint IS NULL
 GROUP BY 1, 2, 3, 4
"""
_RETRYING = """
SELECT name.workflow, coalesce(i.fingerprint, ''), i.started_by = %(person)s AS is_own, count(*), min(i.wake_at),
       (array_agg(i.key ORDER BY i.wake_at, i.key))[1:%(soonest)s]
  FROM unnest(%(workflows)s::text[]) AS name(workflow)
 CROSS JOIN LATERAL (
       SELECT i.key, i.fingerprint, i.started_by, i.wake_at FROM engine_instance i
        WHERE i.workflow = name.workflow AND i.status = 'waiting' AND i.waiting_for = 'retry'
        ORDER BY i.key DESC LIMIT %(cap)s) AS i
 GROUP BY 1, 2, 3
"""
_GROUPS = f"""
WITH active AS MATERIALIZED (
    SELECT f.fingerprint, errored.*
    FROM engine_failure f CROSS JOIN LATERAL (
        SELECT count(*) AS n, count(*) FILTER (WHERE finished_at > %(hour)s) AS in_hour, min(finished_at) AS first_at,
            max(key) AS newest
        FROM (
            SELECT i.finished_at, i.key FROM engine_instance i
            WHERE i.fingerprint = f.fingerprint AND i.status = 'errored' AND i.finished_at > %(since)s
            ORDER BY i.finished_at DESC LIMIT %(cap)s
        ) AS capped
    ) AS errored
    WHERE f.workflow = ANY (%(workflows)s) AND (errored.n > 0 OR f.fingerprint = ANY (%(retrying)s))
)
SELECT f.fingerprint, f.kin, f.workflow, f.step, f.phase, f.type, f.first_seen > %(since)s, f.last_seen,
    active.n, active.in_hour, active.newest, CASE WHEN active.n < %(cap)s THEN active.first_at ELSE (
        SELECT i.finished_at FROM engine_instance i
        WHERE i.fingerprint = f.fingerprint AND i.status = 'errored' AND i.finished_at > %(since)s
        ORDER BY i.finished_at LIMIT 1
    ) END
FROM ({sql.STATED} AND f.fingerprint IN (SELECT fingerprint FROM active)) AS f JOIN active USING (fingerprint)
WHERE f.state = 'open' ORDER BY f.last_seen DESC, f.fingerprint LIMIT %(most)s
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Errored:
    """Instances of a group that errored in the last day. At `CAP`, the counts say "at least"."""

    count: int = 0
    since: datetime | None = None
    in_hour: int = 0
    newest: int | None = None
    """The highest key of theirs."""

    def __add__(self, other: Errored) -> Errored:
        since = [at for at in (self.since, other.since) if at is not None]
        keys = [key for key in (self.newest, other.newest) if key is not None]
        return Errored(
            self.count + other.count,
            min(since, default=None),
            self.in_hour + other.in_hour,
            max(keys, default=None),
        )


@dataclass(frozen=True, slots=True)
class BackingOff:
    """Instances of a group that wait for a retry, and the keys of those whose next attempt is the soonest."""

    count: int = 0
    next_at: datetime | None = None
    soonest: tuple[int, ...] = ()

    def __add__(self, other: BackingOff) -> BackingOff:
        if self.next_at is None or other.next_at is None:
            return self if self.next_at is not None else other
        first, second = (self, other) if self.next_at <= other.next_at else (other, self)
        keys = (*first.soonest, *second.soonest)[:SOONEST]
        return BackingOff(self.count + other.count, first.next_at, keys)


@dataclass(frozen=True, slots=True)
class Part:
    """The instances of a group that fail now: all of them, or those of one person."""

    errored: Errored = Errored()
    not_rolled_back: Errored = Errored()
    """Those of the errored ones whose rollback failed, among the newest of the workflow."""
    retrying: BackingOff = BackingOff()

    @property
    def is_empty(self) -> bool:
        return not (self.errored.count or self.retrying.count)


@dataclass(frozen=True, slots=True)
class CurrentGroup:
    """An open group that fails now. What failed before there were groups has no fingerprint, and no type."""

    fingerprint: str
    kin: str
    workflow: str
    step: str = ""
    phase: str = "do"
    type: str = ""
    is_new: bool = False
    """Whether it failed for the first time in the last day."""
    last_seen: datetime | None = None
    everything: Part = field(default_factory=Part)
    own: Part = field(default_factory=Part)
    """What the person has started."""


def current(workflows: Collection[str], now: datetime, *, person: str = "") -> list[CurrentGroup]:
    """Return the open groups of these workflows that fail now, with three queries.

    `person` is who has started what is counted as their own, among the newest instances of each workflow.
    """
    asked: dict[str, Any] = {
        "workflows": sorted(workflows),
        "person": person,
        "since": now - WINDOW,
        "hour": now - HOUR,
        "cap": CAP,
        "most": MOST,
        "soonest": SOONEST,
    }
    parts = _parts(_ask(_ERRORED, asked), _ask(_RETRYING, asked))
    waiting = sorted(found for (_, found), one in parts.items() if found and one["all"].retrying.count)
    groups = [_group(row, parts) for row in _ask(_GROUPS, {**asked, "retrying": waiting})]
    unmarked = [
        CurrentGroup("", "", workflow, everything=one["all"], own=one["own"])
        for (workflow, fingerprint), one in sorted(parts.items())
        if not fingerprint
    ]
    return [group for group in (*groups, *unmarked) if not group.everything.is_empty]


_Parts = Mapping[tuple[str, str], Mapping[str, Part]]


def _parts(errored: Sequence[tuple[Any, ...]], retrying: Sequence[tuple[Any, ...]]) -> _Parts:
    """Return by workflow and fingerprint all that fails, and the person's own."""
    found: dict[tuple[str, str], dict[str, Part]] = {}

    def add(workflow: str, fingerprint: str, part: Part, *, is_own: bool) -> None:
        of = found.setdefault((workflow, fingerprint), {"all": Part(), "own": Part()})
        for name in ("all", "own") if is_own else ("all",):
            before = of[name]
            of[name] = Part(
                before.errored + part.errored,
                before.not_rolled_back + part.not_rolled_back,
                before.retrying + part.retrying,
            )

    for workflow, fingerprint, is_own, is_stuck, *figures in errored:
        one = Errored(*figures)
        add(workflow, fingerprint, Part(one, one if is_stuck else Errored()), is_own=is_own)
    for workflow, fingerprint, is_own, count, next_at, keys in retrying:
        add(workflow, fingerprint, Part(retrying=BackingOff(count, next_at, (*keys,))), is_own=is_own)
    return found


def _group(row: tuple[Any, ...], parts: _Parts) -> CurrentGroup:
    fingerprint, kin, workflow, step, phase, kind, is_new, last_seen = row[:8]
    count, in_hour, newest, since = row[8:]
    found = parts.get((workflow, fingerprint), {"all": Part(), "own": Part()})
    part = found["all"]
    errored = Errored(count, since, in_hour, newest)
    return CurrentGroup(
        fingerprint,
        kin,
        workflow,
        step,
        phase,
        kind,
        is_new,
        last_seen,
        everything=Part(errored, part.not_rolled_back, part.retrying),
        own=found["own"],
    )


def _ask(statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
