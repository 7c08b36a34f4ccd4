"""One grammar for durations: timedeltas, numbers of seconds, strings such as `1h 30m`."""

import math
import re
from datetime import timedelta
from fractions import Fraction

MAX_DURATION = timedelta(days=365)

_SECONDS = {
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86_400),
    "w": Fraction(604_800),
}
_SPELLINGS = {
    "ms": ("ms",),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "d": ("d", "day", "days"),
    "w": ("w", "week", "weeks"),
}
_UNITS = {spelling: unit for unit, spellings in _SPELLINGS.items() for spelling in spellings}

# [0-9] and not \d, which also matches full-width digits. Twenty digits exceed the limit and bound the effort.
_PART = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)[ \t]*([A-Za-z]+)[ \t]*")


def parse_duration(value: timedelta | float | str, *, what: str = "duration") -> timedelta:
    """Return the duration of a value, from 0 to 365 days.

    Raises ValueError for anything else. `what` names the value in its message.
    """
    seconds = _seconds(value, what)
    if seconds < 0:
        raise _refused(value, what, "is negative")
    if seconds > MAX_DURATION.days * 86_400:
        raise _refused(value, what, "is longer than 365 days")
    return timedelta(microseconds=round(seconds * 1_000_000))


def format_duration(duration: timedelta) -> str:
    """Show a duration in at most two units: `850 ms`, `4.2 s`, `2 m 04 s`, `1 d 3 h`; never rounds up."""
    micros = max(duration // timedelta(microseconds=1), 0)
    seconds = micros // 1_000_000
    if micros == 0:
        return "0 s"
    if micros < 1000:
        return "<1 ms"
    if seconds < 1:
        return f"{micros // 1000} ms"
    if seconds < 10:
        tenths = micros // 100_000 % 10
        return f"{seconds}.{tenths} s" if tenths else f"{seconds} s"
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} m {seconds % 60:02} s"
    if seconds < 86_400:
        return f"{seconds // 3600} h {seconds % 3600 // 60:02} m"
    days, hours = seconds // 86_400, seconds % 86_400 // 3600
    return f"{days} d {hours} h" if hours else f"{days} d"


def _seconds(value: object, what: str) -> Fraction | int:
    """Return the exact number of seconds. Integers stay integers, so that nothing overflows before the limit."""
    if isinstance(value, timedelta):
        return Fraction(value // timedelta(microseconds=1), 1_000_000)
    if isinstance(value, str):
        return _seconds_of_text(value, what)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refused(value, what, "is not a timedelta, a number of seconds or a string")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _refused(value, what, "is not a finite number")
        return Fraction(value)
    return value


def _seconds_of_text(text: str, what: str) -> Fraction:
    rest = text.strip(" \t\r\n")
    if not rest:
        raise _refused(text, what, "is empty")
    if re.fullmatch(r"[0-9.]+", rest):
        raise _refused(text, what, "has no unit")
    total, at, seen = Fraction(0), 0, set[str]()
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None:
            raise _refused(text, what, "is not a duration")
        number, spelling = part.groups()
        unit = _UNITS.get(spelling.lower())
        if unit is None:
            raise _refused(text, what, f"has an unknown unit {_quoted(spelling)}")
        if unit in seen:
            raise _refused(text, what, f"has the unit {_quoted(spelling)} twice")
        seen.add(unit)
        total += Fraction(number) * _SECONDS[unit]
        at = part.end()
    return total


def _refused(value: object, what: str, reason: str) -> ValueError:
    return ValueError(
        f"The {what} {_quoted(value)} {reason}. "
        'Give a timedelta, a number of seconds, or a string such as "30s", "10m", "1h 30m" or "2 days" '
        "(units ms, s, m, h, d, w; at most 365 days)."
    )


def _quoted(value: object) -> str:
    """Quote a value for a message, whatever its size and even if its `repr` raises."""
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 80 else f'"{value[:80]}…"'
    if isinstance(value, int) and abs(value) >= 10**80:  # Python refuses to print more than 4,300 digits
        return "(an integer of more than 80 digits)"
    return f'"{value}"' if isinstance(value, int | float | timedelta) else f"({type(value).__qualname__})"
