"""The table of workflows: what each did in the last 24 hours, and what is open now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.status.last_day import LastDay, counted_since, ends_of_last_day, last_day
from engine.values.durations import format_duration
from studio.workflows.bars import DayBars, day_bars
from studio.workflows.queries import Overview, overviews

_STEPS = (
    (10, 1),
    (60, 1),
    (600, 10),
    (3_600, 60),
    (36_000, 600),
    (86_400, 3_600),
    (864_000, 21_600),
)  # seconds


@dataclass(frozen=True, slots=True)
class FlowRow:
    """A workflow and its last 24 hours."""

    of: Overview
    day: LastDay

    @property
    def bars(self) -> DayBars:
        return day_bars(self.day.hours)

    @property
    def rate(self) -> str:
        return percent(self.day.rate)

    @property
    def p50(self) -> str:
        return rough(self.day.p50)

    @property
    def p95(self) -> str:
        return rough(self.day.p95)

    @property
    def open(self) -> dict[str, int]:
        """How many are open now, by shown status."""
        return {status: n for status, n in self.of.counts.items() if n}


@dataclass(frozen=True, slots=True)
class FlowTable:
    """Rows of workflows; `total` counts those that are not among them, too."""

    rows: tuple[FlowRow, ...]
    total: int
    counted_since: datetime | None  # if that is within the 24 hours

    def __iter__(self) -> Iterator[FlowRow]:
        return iter(self.rows)


def flow_table(names: Sequence[str], *, most: int | None = None) -> FlowTable:
    """Read the table: first those that fail more than usual, by the number of failures, then the others by name.

    `most`: the first rows only, without when each workflow started last.
    """
    is_whole = most is None or len(names) <= most
    ends = days = last_day(names) if is_whole else ends_of_last_day(names)
    shown = sorted(names, key=lambda name: (-ends[name].errored * ends[name].is_unusual, name))[:most]
    if not is_whole:
        days = last_day(shown)
    found = overviews(shown, only_open=True, without_last=most is not None)
    rows = tuple(FlowRow(one, days[one.name]) for one in found)
    return FlowTable(rows, len(names), counted_since())


def percent(share: float | None) -> str:
    """Return a share as text: one decimal below 10 %; empty if there is none."""
    if share is None:
        return ""
    if 0 < share < 0.0005:
        return "<0.1 %"
    text = f"{share:.1%}" if share < 0.0995 else f"{share:.0%}"
    return text.replace(".0%", "%").replace("%", " %")


def rough(duration: timedelta | None) -> str:
    """Return a duration as exactly as counts tell it: in steps of about 10 %. Empty if there is none."""
    if duration is None:
        return ""
    seconds = duration.total_seconds()
    if seconds < 1:
        milliseconds = float(f"{seconds * 1000:.2g}")
        return format_duration(timedelta(milliseconds=max(1, round(milliseconds))))
    step = next((step for below, step in _STEPS if seconds < below), 86_400)
    if seconds < 10:
        return format_duration(timedelta(seconds=round(seconds, 1)))
    text = format_duration(timedelta(seconds=round(seconds / step) * step))
    return text.removesuffix(" 00 s").removesuffix(" 00 m")
