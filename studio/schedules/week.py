"""A week of schedules: seven days of hours, with what ran and what is to come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from engine.models import ScheduleRow
from engine.status.limits import Limits
from engine.steer.schedules import clock, cron_of, starter
from studio.schedules import ran
from studio.schedules.blocks import Block
from studio.schedules.coming import hour_of, planned_in
from studio.schedules.week_address import WeekAddress, begin_of

SHOWN = 4  # blocks of an hour
MOST = 60  # schedules: the times to come of each are computed
DAY, WEEK, MICROSECOND = timedelta(days=1), timedelta(days=7), timedelta(microseconds=1)


@dataclass(slots=True)
class Hour:
    """An hour of a day, with its blocks. `now` is set where the present is: how many blocks begin before it."""

    number: int
    blocks: list[Block] = field(default_factory=list)
    is_now: bool = False
    now: str = ""

    @property
    def shown(self) -> list[Block]:
        return self.blocks[:SHOWN]

    @property
    def more(self) -> int:
        return len(self.blocks) - len(self.shown)

    @property
    def past(self) -> list[Block]:
        return [one for one in self.shown if one.is_past] if self.is_now else self.shown

    @property
    def coming(self) -> list[Block]:
        return [one for one in self.shown if not one.is_past] if self.is_now else []


@dataclass(frozen=True, slots=True)
class Day:
    """A day with its 24 hours. `change` says whether clocks change on it."""

    date: date
    number: int  # from Monday, which is 0
    hours: tuple[Hour, ...]
    is_today: bool
    change: str

    @property
    def is_empty(self) -> bool:
        return not any(hour.blocks for hour in self.hours)


@dataclass(frozen=True, slots=True)
class Week:
    """What the page shows. `left_out` are schedules beyond those that are shown."""

    days: tuple[Day, ...]
    now: datetime
    is_cut: bool
    left_out: int
    is_empty: bool


def week_of(asked: WeekAddress, rows: Sequence[ScheduleRow]) -> Week:
    """Read a week of these schedules, with four queries."""
    now, zone = clock(), asked.tz
    monday = asked.monday_at(now)
    first, end = begin_of(monday, zone), begin_of(monday + WEEK, zone)
    shown = rows[:MOST]
    past = ran.read(shown, first, end) if shown and first <= now else ran.Past((), ())
    blocks = _Blocks(zone)
    blocks.add_past(shown, past)
    for row in shown:
        blocks.add_coming(row, first, end, now)
    days = tuple(_days(monday, now, zone, blocks))
    return Week(days, now, past.is_cut, len(rows) - len(shown), not blocks.found)


class _Blocks:
    """The blocks of a week, by the day and hour of the clock and by schedule."""

    def __init__(self, zone: ZoneInfo) -> None:
        self.zone = zone
        self.found: dict[tuple[date, int], dict[tuple[str, str], Block]] = {}

    def add_past(self, rows: Sequence[ScheduleRow], past: ran.Past) -> None:
        by_starter = {(row.workflow, starter(row)): row for row in rows}
        by_name = {(row.workflow, row.name): row for row in rows}
        for run in past.runs:
            self._at(by_starter[run.workflow, run.starter], run.first).runs.append(run)
        for refused in past.refused:
            self._at(by_name[refused.workflow, refused.schedule], refused.at).refused.append(refused)

    def add_coming(self, row: ScheduleRow, first: datetime, end: datetime, now: datetime) -> None:
        for at, times, is_overdue in _coming(row, str(self.zone), first, end, now):
            block = self._at(row, at)
            block.coming, block.is_overdue = [*block.coming, *times], is_overdue or block.is_overdue

    def _at(self, row: ScheduleRow, moment: datetime) -> Block:
        there = moment.astimezone(self.zone)
        within = self.found.setdefault((there.date(), there.hour), {})
        key = (row.workflow, row.name)
        if key not in within:
            within[key] = Block(row, *_bounds(moment, self.zone), self.zone)
        return within[key]


def _coming(
    row: ScheduleRow, zone: str, first: datetime, end: datetime, now: datetime
) -> Iterator[tuple[datetime, list[datetime], bool]]:
    """Yield the hours with times to come, and a time that has passed without a start."""
    if not row.is_declared or end <= now:
        return
    due = row.next_at
    if due is not None and due <= now and first <= due:
        yield due, [due], now - due > Limits().max_due
    try:
        planned = planned_in(cron_of(row), zone, first, end)
    except (KeyError, ValueError):  # a time zone that this machine does not have
        return
    for one in planned:
        times = [at for at in one.times if at > now]
        if times:
            yield one.hour, times, False


def _bounds(moment: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Return when the hour of the clock begins that a moment is in, and when it is over, also if it is repeated."""
    there = moment.astimezone(zone)
    begin = there.replace(minute=0, second=0, microsecond=0, fold=0)
    last = there.replace(minute=59, second=59, microsecond=999_999, fold=1)
    utc = ZoneInfo("UTC")
    return min(begin.astimezone(utc), hour_of(moment, zone)), last.astimezone(utc) + MICROSECOND


def _days(monday: date, now: datetime, zone: ZoneInfo, blocks: _Blocks) -> Iterator[Day]:
    present = now.astimezone(zone)
    for number in range(7):
        day = monday + number * DAY
        hours = []
        for hour in range(24):
            found = sorted(blocks.found.get((day, hour), {}).values(), key=lambda one: (one.first, one.name))
            is_now = (day, hour) == (present.date(), present.hour)
            hours.append(Hour(hour, found, is_now, f"{present:%H:%M}" if is_now else ""))
        yield Day(day, number, tuple(hours), day == present.date(), _change(day, zone))


def _change(day: date, zone: ZoneInfo) -> str:
    before, after = (datetime.combine(one, time(), zone).utcoffset() for one in (day, day + DAY))
    if before == after or before is None or after is None:
        return ""
    return "clocks go forward" if after > before else "clocks go back"
