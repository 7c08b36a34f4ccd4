"""When a schedule fires: cron expressions of five fields, read in the local time of a time zone."""

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

# Missed times are counted up to this number.
MAX_MISSED = 1_000

# An expression that fires at all does so within 28 years after a leap year divisible by 400.
_PROBE = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression and its time zone. All returned moments are in UTC.

    When clocks change, it behaves like Debian's cron. An expression with a fixed minute and hour ("30 2 * * *") fires
    once that day: a skipped time fires at the next existing one, and a repeated time fires at its first occurrence. An
    expression with a star in the minute or the hour ("*/15 * * * *") follows the clock: skipped times do not fire, and
    repeated times fire twice.
    """

    expression: str
    timezone: str

    @classmethod
    def of(cls, expression: object, timezone: object) -> Cron:
        """Check both. Raises ValueError that quotes the invalid one and states the rule."""
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
        """Return the last planned moment up to now, and how many planned moments since `first` were missed before it.

        `first` is itself a planned moment, and not after now. At most a thousand are counted.
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
        """Return the last moment from `first` up to now that both plan, if any."""
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
        """Return the last planned moment without iterating over all earlier ones: there may be years of minutes."""
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
        """Yield the next moments after a clock change. The library continues from it in whole hours even if the change
        was
        half an hour, and then skips minutes, so it is asked again from the first full hour.
        """
        into_the_hour = change.astimezone(zone).replace(tzinfo=None) - _full_hour(change, zone)
        for start in (change, change + (HOUR - into_the_hour) % HOUR):
            yield from islice((one for one in self._times(start - SECOND, zone) if one > last), 1)

    def _times(self, moment: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """Yield what the library plans from this moment on; around a clock change also past and repeated times."""
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
    """Return the second from which the zone has the later offset."""
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
    """Return whether a refused expression is wrong only because its months do not have the day."""
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
        raise _refused(expression, f"It has {len(expression):,} characters; the limit is {MAX_EXPRESSION}.")
    if len(expression.split()) != FIELDS or not expression.isascii():
        raise _refused(expression, _LEGEND)
    return " ".join(expression.split())


def _checked_zone(timezone: object) -> str:
    # zoneinfo raises various errors for a name that is a folder, a path, or empty.
    try:
        return ZoneInfo(_zone_name(timezone)).key
    except (LookupError, ValueError, OSError):
        shown = repr(timezone)[:MAX_TIMEZONE]
        rule = 'Use a name from the IANA database, such as "Europe/Berlin" or "UTC".'
        raise ValueError(f"There is no time zone {shown}. {rule}") from None


def _zone_name(timezone: object) -> str:
    if not isinstance(timezone, str) or not 0 < len(timezone) <= MAX_TIMEZONE:
        raise ValueError
    return timezone


def _refused(expression: object, rule: str) -> ValueError:
    return ValueError(f'"{str(expression)[:MAX_EXPRESSION]}" is not a valid schedule. {rule}')
