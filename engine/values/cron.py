"""When a schedule fires: cron expressions of five fields, read by the clock on the wall of a time zone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

MAX_EXPRESSION = 100  # characters
MAX_TIMEZONE = 64
FIELDS = 5

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)

# Of the planned times that were missed, so many are counted.
MAX_MISSED = 1_000

# Whoever fires at all does so within 28 years of a leap year that begins a century of four hundred.
_PROBE = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression and its time zone. All moments that come out are in UTC.

    When clocks change it does what Debian's cron does. An expression whose minute and hour both name fixed times
    ("30 2 * * *") fires once that day: a time that is skipped fires at the next one that exists, a time that comes
    twice fires at the first. One with a star in the minute or the hour ("*/15 * * * *") follows the clock: what is
    skipped is left out, and what comes twice fires twice.
    """

    expression: str
    timezone: str

    @classmethod
    def of(cls, expression: object, timezone: object) -> Cron:
        """Check both. The ValueError of a wrong one quotes it and says the rule."""
        cron = cls(_checked_expression(expression), _checked_zone(timezone))
        try:
            fires = cron.after(_PROBE)
        except (CronSimError, AssertionError) as problem:
            rule = (
                _NEVER if _names_no_date(cron.expression) else f"{_LEGEND} {problem or 'It cannot be read'}."
            )
            raise _refused(expression, rule) from None
        if fires is None:
            raise _refused(expression, _NEVER)
        return cron

    def after(self, moment: datetime) -> datetime | None:
        """Return the first planned moment after this one; None if there is none within 50 years."""
        return next(self._walk(moment), None)

    def upcoming(self, moment: datetime, count: int) -> list[datetime]:
        """Return the next planned moments after this one."""
        return list(islice(self._walk(moment), count))

    def latest(self, first: datetime, now: datetime) -> tuple[datetime, int]:
        """Return the last planned moment up to now, and how many from `first` on were missed before it.

        `first` is a planned moment itself, and not after now. At most a thousand are counted.
        """
        planned, missed = first, 0
        for moment in self._walk(first):
            if moment > now:
                return planned, missed
            if missed == MAX_MISSED:
                break
            planned, missed = moment, missed + 1
        else:
            return planned, missed
        return self._last_until(now), MAX_MISSED

    def latest_shared(self, other: Cron, first: datetime, now: datetime) -> datetime | None:
        """Return the last moment from `first` up to now that both have planned, if there is any."""
        window = timedelta(hours=1)
        while True:
            since = max(first, now - window) - SECOND
            own, others = (set(one._until(since, now)) for one in (self, other))
            if own & others or since < first:
                return max(own & others, default=None)
            window *= 4

    def _until(self, since: datetime, now: datetime) -> Iterator[datetime]:
        return takewhile(lambda moment: moment <= now, self._walk(since))

    def _last_until(self, now: datetime) -> datetime:
        """Find the last planned moment without walking over all before it: there may be years of minutes."""
        window = timedelta(hours=1)
        while (planned := self.after(now - window)) is None or planned > now:
            window *= 2
        for moment in self._walk(planned):
            if moment > now:
                break
            planned = moment
        return planned

    def _walk(self, moment: datetime) -> Iterator[datetime]:
        zone, last = ZoneInfo(self.timezone), moment
        times = self._times(moment, zone)
        while (at := next((one for one in times if one > last), None)) is not None:
            if _offset(last - HOUR, zone) != _offset(at, zone):
                at = min([at, *self._around(_change(last - HOUR, at, zone), last, zone)])
                times = self._times(at, zone)
            last = at
            yield at

    def _around(self, change: datetime, last: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """Give what is next from a change on. The library goes on from it in whole hours, also if the change was half
        an hour, and steps over minutes then; so it is asked again from the first full hour.
        """
        into_the_hour = change.astimezone(zone).replace(tzinfo=None) - _full_hour(change, zone)
        for start in (change, change + (HOUR - into_the_hour) % HOUR):
            yield from islice((one for one in self._times(start - SECOND, zone) if one > last), 1)

    def _times(self, moment: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """Give what the library plans from this moment on; around a change also what has passed, or comes twice."""
        try:
            for planned in CronSim(self.expression, moment.astimezone(zone)):
                yield planned.astimezone(UTC)
        except (OverflowError, ValueError):  # the end of the calendar
            return


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta | None:
    return moment.astimezone(zone).utcoffset()


def _full_hour(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(minute=0, second=0, microsecond=0, tzinfo=None)


def _change(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Find the second from which the zone has the offset that it has after."""
    while after - before > SECOND:
        middle = before + (after - before) / 2
        if _offset(middle, zone) == _offset(after, zone):
            after = middle
        else:
            before = middle
    return after


_LEGEND = (
    'It must have five fields: minute, hour, day of the month, month, day of the week, as in "0 9 * * 1-5".'
)

_NEVER = "It never fires: there is no such date."


def _names_no_date(expression: str) -> bool:
    """Tell whether an expression that was refused is only wrong because its months lack the day."""
    minute, hour, day, month, weekday = expression.split()
    try:
        CronSim(f"0 0 1 {month} *", _PROBE)
        CronSim(f"{minute} {hour} {day} * {weekday}", _PROBE)
    except (CronSimError, AssertionError):
        return False
    return True


def _checked_expression(expression: object) -> str:
    if not isinstance(expression, str):
        raise _refused(type(expression).__qualname__, f"It must be a string. {_LEGEND}")
    if len(expression) > MAX_EXPRESSION:
        raise _refused(expression, f"It has {len(expression):,} characters; {MAX_EXPRESSION} are the limit.")
    if len(expression.split()) != FIELDS or not expression.isascii():
        raise _refused(expression, _LEGEND)
    return " ".join(expression.split())


def _checked_zone(timezone: object) -> str:
    # Whatever zoneinfo raises for a name that is a folder, a path, or nothing at all.
    try:
        return ZoneInfo(_zone_name(timezone)).key
    except (LookupError, ValueError, OSError):
        shown = repr(timezone)[:MAX_TIMEZONE]
        rule = 'Give a name of the IANA database, as "Europe/Berlin" or "UTC".'
        raise ValueError(f"There is no time zone {shown}. {rule}") from None


def _zone_name(timezone: object) -> str:
    if not isinstance(timezone, str) or not 0 < len(timezone) <= MAX_TIMEZONE:
        raise ValueError
    return timezone


def _refused(expression: object, rule: str) -> ValueError:
    return ValueError(f'"{str(expression)[:MAX_EXPRESSION]}" is no schedule. {rule}')
