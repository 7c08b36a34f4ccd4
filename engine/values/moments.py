"""When an instance is to start: a moment in the future that says its time zone."""

from __future__ import annotations

from datetime import UTC, datetime

from engine.values.durations import MAX_DURATION
from engine.values.errors import InvalidValueError

EXAMPLE = "2026-12-01T09:00+01:00"


def read_moment(given: object) -> datetime:
    """Return an aware datetime, given as it is or as ISO 8601. Raises InvalidValueError."""
    if isinstance(given, str):
        try:
            moment = _parsed(given.strip())
        except ValueError:
            raise _refused(f'"{given[:100]}" is not a date and time. Write it like {EXAMPLE}.') from None
    elif isinstance(given, datetime):
        moment = given
    else:
        raise _refused(f"It must be a datetime or its text, such as {EXAMPLE}. It is {repr(given)[:100]}.")
    if moment.utcoffset() is None:
        raise _refused(
            f'"{moment.isoformat()}" has no time zone. Use an aware datetime, or write it like {EXAMPLE}.'
        )
    return moment


def check_start(moment: datetime, now: datetime) -> datetime | None:
    """Return the moment in UTC, or None for now if it has passed. Raises InvalidValueError if it is too far away."""
    if moment <= now:
        return None
    if moment - now > MAX_DURATION:
        raise _refused(f'"{moment.isoformat()}" is more than {MAX_DURATION.days} days away.')
    return moment.astimezone(UTC)


def _parsed(text: str) -> datetime:
    if not text.isprintable():  # Python stops reading at a NUL
        raise ValueError
    return datetime.fromisoformat(text)


def _refused(message: str) -> InvalidValueError:
    return InvalidValueError("$", "invalid_at", message, what="start time", problem="cannot be used")
