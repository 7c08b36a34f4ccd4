"""What fails now: instances that errored in the last day or wait for a retry, by group, and those of one person apart.

Whatever the tables hold, each query ends after so many rows of an index: the newest instances of each workflow, and one
descent for each group of failures.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from engine.status.failures import failing_sql

WINDOW = timedelta(days=1)
HOUR = timedelta(hours=1)
CAP = 1_001  # instances of a group, and of a workflow where each is looked at
LOOKED_AT = 5_000  # failures of a workflow, the newest; if there are more, each group is counted by itself
MOST = 500  # groups
SOONEST = 20  # keys of those that wait for a retry


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
    """Instances of a group that wait for a retry, and when the next attempt of the first of them starts."""

    count: int = 0
    next_at: datetime | None = None
    newest: int | None = None
    """The highest key of theirs."""

    def __add__(self, other: BackingOff) -> BackingOff:
        nexts = [at for at in (self.next_at, other.next_at) if at is not None]
        keys = [key for key in (self.newest, other.newest) if key is not None]
        return BackingOff(self.count + other.count, min(nexts, default=None), max(keys, default=None))


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
    grows: bool = False
    """Whether it has failed lately."""
    errored: Errored = Errored()
    not_rolled_back: Errored = Errored()
    """Those of the errored ones whose rollback failed, among the newest of the workflow."""
    retrying: BackingOff = BackingOff()


def current(workflows: Collection[str], now: datetime, *, lately: timedelta) -> list[CurrentGroup]:
    """Return the open groups of these workflows that fail now, with one query. What failed `lately` grows."""
    asked = {**_asked(workflows, now), "lately": now - lately}
    rows = _ask(failing_sql.CURRENT, asked)
    return [_group(row) for row in sorted(rows, key=lambda row: (row[1] == "", row[1], row[0]))]


def started_by(
    person: str, groups: Sequence[CurrentGroup], workflows: Collection[str], now: datetime
) -> list[CurrentGroup]:
    """Return what this person has started of these groups, among the newest instances of each workflow.

    With two queries. Groups of which there is nothing are left out.
    """
    asked = _asked(workflows, now, person)
    errored: dict[tuple[str, str], list[tuple[bool, Errored]]] = {}
    for workflow, fingerprint, is_stuck, *figures in _ask(failing_sql.ERRORED_OF_PERSON, asked):
        errored.setdefault((workflow, fingerprint), []).append((is_stuck, Errored(*figures)))
    retrying = {
        (workflow, fingerprint): BackingOff(*figures)
        for workflow, fingerprint, *figures in _ask(failing_sql.RETRYING_OF_PERSON, asked)
    }
    return [
        replace(
            group,
            errored=sum((one for _, one in errored.get(at, ())), Errored()),
            not_rolled_back=sum((one for is_stuck, one in errored.get(at, ()) if is_stuck), Errored()),
            retrying=retrying.get(at, BackingOff()),
        )
        for group in groups
        if (at := (group.workflow, group.fingerprint)) in errored or at in retrying
    ]


def last_seen(fingerprints: Collection[str]) -> dict[str, datetime]:
    """Return when each of these groups failed last."""
    if not fingerprints:
        return {}
    return dict(_ask(failing_sql.LAST_SEEN, {"fingerprints": [*fingerprints]}))


def soonest(
    groups: Collection[tuple[str, str]], *, person: str | None = None
) -> dict[tuple[str, str], list[int]]:
    """Return the keys of instances whose next attempt is the soonest, by workflow and fingerprint."""
    if not groups:
        return {}
    names, fingerprints = zip(*groups, strict=True)
    values = {
        "workflows": sorted({*names}),
        "of": [*names],
        "fingerprints": [*fingerprints],
        "person": person,
    }
    rows = _ask(failing_sql.SOONEST, {**values, "cap": CAP, "soonest": SOONEST})
    return {(workflow, fingerprint): keys for fingerprint, workflow, keys in rows}


def _asked(workflows: Collection[str], now: datetime, person: str | None = None) -> dict[str, Any]:
    return {
        "workflows": sorted(workflows),
        "person": person,
        "since": now - WINDOW,
        "hour": now - HOUR,
        "cap": CAP,
        "looked_at": LOOKED_AT,
        "most": MOST,
    }


def _group(row: tuple[Any, ...]) -> CurrentGroup:
    workflow, fingerprint, kin, step, phase, kind, is_new, grows = row[:8]
    count, since, in_hour, newest = row[8:12]
    errored = Errored(count, _time(since), in_hour, newest) if count else _NO_ERRORED
    stuck, stuck_since, stuck_in_hour, newest_stuck = row[12:16]
    not_rolled_back = (
        Errored(stuck, _time(stuck_since), stuck_in_hour, newest_stuck) if stuck else _NO_ERRORED
    )
    backing_off, next_at, newest_retrying = row[16:]
    retrying = BackingOff(backing_off, _time(next_at), newest_retrying) if backing_off else _NO_RETRYING
    if not fingerprint:
        return CurrentGroup(
            "", "", workflow, grows=grows, errored=errored, not_rolled_back=not_rolled_back, retrying=retrying
        )
    about = (fingerprint, kin, workflow, step, phase, kind, is_new, grows)
    return CurrentGroup(*about, errored, not_rolled_back, retrying)


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


_NO_ERRORED, _NO_RETRYING = Errored(), BackingOff()


def _ask(statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
