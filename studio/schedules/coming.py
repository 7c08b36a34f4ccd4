"""The planned times of a week, by the hour. Pure.

The engine says which times are planned (`engine.values.cron`). Asked for each of 10,080 minutes, it would take a
second: it is asked for the times of one day, and for each other day whether it has any; where clocks change, for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from engine.values.cron import Cron
from studio.schedules.week_address import begin_of

HOUR, DAY, SECOND = timedelta(hours=1), timedelta(days=1), timedelta(seconds=1)
FEW = 4  # times that are asked for at first
KEPT = 500


@dataclass(frozen=True, slots=True)
class Planned:
    """What is planned within an hour: its beginning, and the minutes after it."""

    hour: datetime
    minutes: tuple[int, ...]

    @property
    def times(self) -> list[datetime]:
        return [self.hour + timedelta(minutes=one) for one in self.minutes]


@lru_cache(maxsize=KEPT)
def planned_in(cron: Cron, zone: str, first: datetime, end: datetime) -> tuple[Planned, ...]:
    """Return the hours of a zone, between two moments, in which the expression plans something.

    Raises KeyError or ValueError for a time zone that this machine does not have.
    """
    hours: dict[datetime, list[int]] = {}
    for moment in _times(cron, first, end):
        hour = hour_of(moment, ZoneInfo(zone))
        hours.setdefault(hour, []).append((moment - hour) // timedelta(minutes=1))
    return tuple(Planned(hour, tuple(minutes)) for hour, minutes in hours.items())


def hour_of(moment: datetime, zone: ZoneInfo) -> datetime:
    """Return when the hour of the clock begins that a moment is in, in UTC."""
    there = moment.astimezone(zone)
    return moment - timedelta(minutes=there.minute, seconds=there.second, microseconds=there.microsecond)


def _times(cron: Cron, first: datetime, end: datetime) -> Iterator[datetime]:
    zone = ZoneInfo(cron.timezone)
    day, pattern = first.astimezone(zone).date(), None
    while (begin := begin_of(day, zone)) < end:
        after = begin_of(day + DAY, zone)
        if _changes(day, zone):
            times = _each(cron, begin, after)
        elif not _is_planned(cron, begin, after):
            times = []
        else:
            pattern = pattern or _pattern(cron, begin, after)
            times = [begin + one for one in pattern]
        yield from (one for one in times if first <= one < end)
        day += DAY


def _each(cron: Cron, begin: datetime, after: datetime) -> list[datetime]:
    found = list[datetime]()
    while more := cron.upcoming(found[-1] if found else begin - SECOND, FEW + len(found)):
        found += more
        if more[-1] >= after:
            break
    return [one for one in found if one < after]


def _is_planned(cron: Cron, begin: datetime, after: datetime) -> bool:
    moment = cron.after(begin - SECOND)
    return moment is not None and moment < after


def _pattern(cron: Cron, begin: datetime, after: datetime) -> list[timedelta]:
    """Return the times of a day since its beginning: each of its hours has the same minutes."""
    hours, minutes = list[timedelta](), list[timedelta]()
    moment = cron.after(begin - SECOND)
    while moment is not None and moment < after:
        hour = (moment - begin) // HOUR * HOUR
        if not minutes:
            within = (one for one in cron.upcoming(begin + hour - SECOND, 60) if one < begin + hour + HOUR)
            minutes = [one - begin - hour for one in within]
        hours.append(hour)
        moment = cron.after(begin + hour + HOUR - SECOND)
    return [hour + minute for hour in hours for minute in minutes]


def _changes(day: date, zone: ZoneInfo) -> bool:
    """Return whether clocks change on that day, or near it: a time that is skipped is planned a little later."""
    noon = begin_of(day, zone) + 12 * HOUR
    return len({(noon + hours * HOUR).astimezone(zone).utcoffset() for hours in range(-18, 19, 3)}) > 1
