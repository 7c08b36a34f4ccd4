"""What the wall screen shows besides Home's sentence: counts, the worst errors, and what was done lately."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.status import last_hour
from engine.status.facts import Servers
from engine.status.failures import CurrentGroup
from engine.status.last_day import Hour, last_day
from engine.status.load import load
from studio.display.at_least import counted
from studio.display.bars import SmallBars, small_bars
from studio.frame.unchanged import Unchanged
from studio.home.asking import CAP as MOST_ASKED
from studio.home.facts import facts_of
from studio.instances.status_counts import totals_by_status
from studio.workflows.bars import DayBars, day_bars

WORST = 3
SETS = 20  # of workflows that are kept, at most


@dataclass(frozen=True, slots=True)
class Worst:
    """The errors of one type in a workflow. Their messages may hold data, so they are left out."""

    workflow: str
    type: str
    steps: tuple[str, ...]
    count: int
    since: datetime | None
    not_rolled_back: int = 0


@dataclass(frozen=True, slots=True)
class _Work:
    """What is read for the wall screen only."""

    counts: dict[str, int]
    oldest_at: datetime | None
    hours: tuple[Hour, ...]
    started: tuple[int, ...]  # within the last hour, by spans of three minutes


@dataclass(frozen=True, slots=True)
class Board:
    """What the screen shows."""

    counts: dict[str, int]
    oldest_at: datetime | None  # since when the oldest is due
    servers: Servers
    errors: int
    asked: int
    worst: tuple[Worst, ...]
    hours: tuple[Hour, ...]
    started: tuple[int, ...]

    @property
    def day(self) -> DayBars:
        return day_bars(self.hours)

    @property
    def hour(self) -> SmallBars:
        return small_bars(self.started)

    @property
    def started_in_hour(self) -> int:
        return sum(self.started)

    @property
    def complete(self) -> int:
        return sum(one.complete for one in self.hours)

    @property
    def errored(self) -> int:
        return sum(one.errored for one in self.hours)


_work = Unchanged[_Work](most=SETS)


def board_of(names: Sequence[str]) -> Board:
    """Return the board of these workflows. What Home has read is not read again."""
    facts = facts_of(names)
    work = _work.read(frozenset(names), lambda: _read(sorted(names)))
    return Board(
        counts=work.counts,
        oldest_at=work.oldest_at,
        servers=facts.servers,
        errors=sum(bool(group.errored.count) for group in facts.errors),
        asked=counted(len(facts.asked), MOST_ASKED),
        worst=worst_of(facts.errors),
        hours=work.hours,
        started=work.started,
    )


def worst_of(groups: Iterable[CurrentGroup]) -> tuple[Worst, ...]:
    """Return the worst errors by workflow and type: first what was not rolled back, then the most instances."""
    alike: dict[tuple[str, str], list[CurrentGroup]] = {}
    for group in groups:
        if group.errored.count:
            alike.setdefault((group.workflow, group.type), []).append(group)
    found = [_worst(workflow, kind, some) for (workflow, kind), some in alike.items()]
    found.sort(key=lambda one: (-one.not_rolled_back, -one.count, one.workflow, one.type))
    return tuple(found[:WORST])


def _worst(workflow: str, type: str, some: Sequence[CurrentGroup]) -> Worst:
    return Worst(
        workflow,
        type,
        tuple(sorted({group.step for group in some if group.step})),
        sum(group.errored.count for group in some),
        min((group.errored.since for group in some if group.errored.since), default=None),
        sum(group.not_rolled_back.count for group in some),
    )


def _read(names: Sequence[str]) -> _Work:
    # Without a workflow, that of a name that none has: nothing, hour by hour.
    days = last_day(names or [""]).values()
    spans = last_hour.started(names or [""]).values()
    return _Work(
        counts=dict(totals_by_status(names)),
        oldest_at=min((one.oldest_at for one in load(names).queues if one.oldest_at), default=None),
        hours=tuple(_together(hours) for hours in zip(*(day.hours for day in days), strict=True)),
        started=tuple(sum(span) for span in zip(*spans, strict=True)),
    )


def _together(hours: Sequence[Hour]) -> Hour:
    return Hour(hours[0].at, sum(one.complete for one in hours), sum(one.errored for one in hours))
