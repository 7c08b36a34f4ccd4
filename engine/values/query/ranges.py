"""Ranges of time in a search: `started:<2h`, `finished:2026-11-01..2026-11-03`, `duration:>5m`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from engine.values.durations import parse_duration
from engine.values.query.problems import NotATermError
from engine.values.query.terms import Bound, Moments, Operator, Took

_YEAR = re.compile(r"\d{4}-", re.ASCII)  # and not 1440m
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?", re.ASCII)
_ONE_DAY = timedelta(days=1)
Moment = datetime | timedelta


def moments(field: str, operator: Operator, text: str) -> Moments:
    """Read a range of moments. A duration means so long ago: `<2h` is within the last two hours."""
    begin, dots, end = text.partition("..")
    if dots:
        if operator is not Operator.IS or not begin or not end:
            raise _refused(field, text)
        first, last = _date(field, begin), _date(field, end)
        if last[1] <= first[0]:
            raise NotATermError(f"{begin} is after {end}. Write the earlier one first.")
        return Moments(field, Bound(first[0], True), Bound(last[1], last[0] == last[1]))
    if not _YEAR.match(text):
        return _ago(field, operator, text)
    first_moment, after_it = _date(field, text)
    is_moment = first_moment == after_it
    match operator:
        case Operator.IS:
            return Moments(field, Bound(first_moment, True), Bound(after_it, is_moment))
        case Operator.MORE:
            return Moments(field, Bound(after_it, not is_moment), None)
        case Operator.AT_LEAST:
            return Moments(field, Bound(first_moment, True), None)
        case Operator.LESS:
            return Moments(field, None, Bound(first_moment, False))
        case Operator.AT_MOST:
            return Moments(field, None, Bound(after_it, is_moment))
    raise _refused(field, text)


def took(operator: Operator, text: str) -> Took:
    """Read a range of durations."""
    begin, dots, end = text.partition("..")
    if dots:
        if operator is not Operator.IS or not begin or not end:
            raise _refused_duration(text)
        shortest, longest = _duration("duration", begin), _duration("duration", end)
        if longest < shortest:
            raise NotATermError(f"{begin} is longer than {end}. Write the shorter one first.")
        return Took(Bound(shortest, True), Bound(longest, True))
    bound = Bound(_duration("duration", text), operator in (Operator.AT_LEAST, Operator.AT_MOST))
    if operator in (Operator.MORE, Operator.AT_LEAST):
        return Took(bound, None)
    if operator in (Operator.LESS, Operator.AT_MOST):
        return Took(None, bound)
    raise _refused_duration(text)


def _ago(field: str, operator: Operator, text: str) -> Moments:
    ago: Moment = _duration(field, text)
    bound = Bound(ago, operator in (Operator.AT_LEAST, Operator.AT_MOST))
    if operator in (Operator.MORE, Operator.AT_LEAST):
        return Moments(field, None, bound)
    if operator in (Operator.LESS, Operator.AT_MOST):
        return Moments(field, bound, None)
    raise NotATermError(
        f"Write {field}:<{text} for the last {text}, or {field}:>{text} for more than {text} ago."
    )


def _date(field: str, text: str) -> tuple[datetime, datetime]:
    """Return the beginning of a day and that of the next, or a moment twice."""
    try:
        if _DAY.fullmatch(text):
            day = datetime.fromisoformat(text).replace(tzinfo=UTC)
            return day, day + _ONE_DAY
        if _MOMENT.fullmatch(text):
            moment = datetime.fromisoformat(text)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return moment.astimezone(UTC), moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise NotATermError(f'"{text}" is not a date that exists.') from None
    raise _refused(field, text)


def _duration(field: str, text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError:
        raise (_refused_duration(text) if field == "duration" else _refused(field, text)) from None


def _refused(field: str, text: str) -> NotATermError:
    return NotATermError(
        f'"{text}" is not a range of time. Write {field}:<2h for the last two hours, {field}:>2h for longer ago, '
        f"{field}:2026-11-01 for a day (UTC), or {field}:2026-11-01..2026-11-03."
    )


def _refused_duration(text: str) -> NotATermError:
    return NotATermError(
        f'"{text}" is not a range of durations. Write duration:>5m, duration:<1h or duration:1m..5m.'
    )
