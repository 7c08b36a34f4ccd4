"""What fails now: instances that errored in the last day or wait for a retry, by group, and those of one person apart.

Whatever the tables hold, each query ends after so many rows of an index: one descent for each group of failures, and
the newest instances of each workflow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from engine.status.failures import sql

WINDOW = timedelta(days=1)
HOUR = timedelta(hours=1)
CAP = 1_001  # instances of a group, and of a workflow where each is looked at
MOST = 500  # groups
SOONEST = 20  # keys of those that wait for a retry

# Among the newest of each workflow: what could not be rolled back, and what has no group; or what a person has started.
# The index of what failed has all of it, and that of what waits the same for retries; the ids are in the rows only.
_ERRORED = """
SELECT name.workflow, coalesce(i.fingerprint, ''), i.rollback = 'failed' AS is_stuck, count(*), min(i.finished_at),
       count(*) FILTER (WHERE i.finished_at > %(hour)s), max(i.key)
  FROM unnest(%(workflows)s::text[]) AS name(workflow)
 CROSS JOIN LATERAL (
       SELECT i.key, i.fingerprint, i.started_by, i.rollback, i.finished_at FROM engine_instance i
        WHERE i.workflow = name.workflow AND i.status = 'errored' AND i.finished_at > %(since)s
        ORDER BY i.finished_at DESC LIMIT %(cap)s) AS i
 WHERE CASE WHEN %(person)s::text IS NULL THEN i.rollback = 'failed' OR i.fingerprint IS NULL
            ELSE i.started_by = %(person)s END
 GROUP BY 1, 2, 3
"""
_RETRYING = """
SELECT name.workflow, coalesce(i.fingerprint, ''), count(*), min(i.wake_at),
       (array_agg(i.key ORDER BY i.wake_at, i.key))[1:%(soonest)s]
  FROM unnest(%(workflows)s::text[]) AS name(workflow)
 CROSS JOIN LATERAL (
       SELECT i.key, i.fingerprint, i.started_by, i.wake_at FROM engine_instance i
        WHERE i.workflow = name.workflow AND i.status = 'waiting' AND i.waiting_for = 'retry'
        ORDER BY i.key DESC LIMIT %(cap)s) AS i
 WHERE %(person)s::text IS NULL OR i.started_by = %(person)s
 GROUP BY 1, 2
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
    errored: Errored = Errored()
    not_rolled_back: Errored = Errored()
    """Those of the errored ones whose rollback failed, among the newest of the workflow."""
    retrying: BackingOff = BackingOff()

    @property
    def is_empty(self) -> bool:
        return not (self.errored.count or self.retrying.count)


def current(workflows: Collection[str], now: datetime) -> list[CurrentGroup]:
    """Return the open groups of these workflows that fail now, with three queries."""
    asked = _asked(workflows, now)
    parts = _parts(asked)
    waiting = sorted(found for (_, found), part in parts.items() if found and part.retrying.count)
    groups = [_group(row, parts) for row in _ask(_GROUPS, {**asked, "retrying": waiting})]
    unmarked = [part for (_, fingerprint), part in sorted(parts.items()) if not fingerprint]
    return [group for group in (*groups, *unmarked) if not group.is_empty]


def started_by(
    person: str, groups: Sequence[CurrentGroup], workflows: Collection[str], now: datetime
) -> list[CurrentGroup]:
    """Return what this person has started of these groups, among the newest instances of each workflow.

    With two queries. Groups of which there is nothing are left out.
    """
    parts = _parts(_asked(workflows, now, person))
    found = []
    for group in groups:
        part = parts.get((group.workflow, group.fingerprint))
        if part is not None and not part.is_empty:
            errored, retrying = part.errored, part.retrying
            found.append(
                replace(group, errored=errored, not_rolled_back=part.not_rolled_back, retrying=retrying)
            )
    return found


_Parts = Mapping[tuple[str, str], CurrentGroup]


def _asked(workflows: Collection[str], now: datetime, person: str | None = None) -> dict[str, Any]:
    return {
        "workflows": sorted(workflows),
        "person": person,
        "since": now - WINDOW,
        "hour": now - HOUR,
        "cap": CAP,
        "most": MOST,
        "soonest": SOONEST,
    }


def _parts(asked: Mapping[str, Any]) -> _Parts:
    """Return by workflow and fingerprint what fails, as groups of which no more is known."""
    errored: dict[tuple[str, str], list[tuple[bool, Errored]]] = {}
    for workflow, fingerprint, is_stuck, *figures in _ask(_ERRORED, asked):
        errored.setdefault((workflow, fingerprint), []).append((is_stuck, Errored(*figures)))
    retrying = {
        (workflow, fingerprint): BackingOff(count, next_at, (*keys,))
        for workflow, fingerprint, count, next_at, keys in _ask(_RETRYING, asked)
    }
    return {
        at: CurrentGroup(
            at[1],
            "",
            at[0],
            errored=sum((one for _, one in errored.get(at, ())), Errored()),
            not_rolled_back=sum((one for is_stuck, one in errored.get(at, ()) if is_stuck), Errored()),
            retrying=retrying.get(at, BackingOff()),
        )
        for at in errored.keys() | retrying.keys()
    }


def _group(row: tuple[Any, ...], parts: _Parts) -> CurrentGroup:
    fingerprint, kin, workflow, step, phase, kind, is_new, last_seen = row[:8]
    count, in_hour, newest, since = row[8:]
    part = parts.get((workflow, fingerprint))
    return CurrentGroup(
        fingerprint,
        kin,
        workflow,
        step,
        phase,
        kind,
        is_new,
        last_seen,
        errored=Errored(count, since, in_hour, newest),
        not_rolled_back=part.not_rolled_back if part else Errored(),
        retrying=part.retrying if part else BackingOff(),
    )


def _ask(statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
