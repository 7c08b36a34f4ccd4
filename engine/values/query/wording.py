"""Say in words what a term asks for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from engine.values.durations import format_duration
from engine.values.query.terms import (
    AtPath,
    Bound,
    Condition,
    Errors,
    FailedAlike,
    Free,
    Ids,
    Literal,
    Moments,
    Names,
    Operator,
    Pattern,
    Statuses,
    Stored,
    System,
    Term,
    Took,
)

_COMPARED = {
    Operator.LESS: "is less than",
    Operator.AT_MOST: "is at most",
    Operator.MORE: "is more than",
    Operator.AT_LEAST: "is at least",
}
_NAMED = {
    "workflow": "the workflow is",
    "step": "it has the step",
    "tag": "it has the tag",
    "by": "it was started by",
}


def in_words(term: Term) -> str:
    """Return what a term asks for: `the status is errored or paused`."""
    said = _said(term.condition)
    return f"not: {said}" if term.is_negated else said


def _said(condition: Condition) -> str:
    match condition:
        case Names():
            return f"{_NAMED[condition.field]} {_any(map(_pattern, condition.patterns))}"
        case Statuses():
            return f"the status is {_any(condition.names)}"
        case Stored():
            return f"the status is {_any(condition.statuses)}"
        case Ids():
            return f"the ID begins with {_any(map(_quoted, condition.beginnings))}"
        case Errors():
            return f"its error contains {_any(map(_quoted, condition.texts))}"
        case FailedAlike():
            return f"its latest failure belongs to the error group {_any(condition.fingerprints)}"
        case System(is_system=is_system):
            return f"it is of {'one of Reprise’s own workflows' if is_system else 'no workflow of Reprise itself'}"
        case Free():
            text = _quoted(condition.text)
            return f"the ID begins with {text} or, if none does, its error contains it"
        case Moments():
            return f"it {condition.field} {_when(condition)}"
        case Took():
            return f"it took {_how_long(condition)}"
        case AtPath():
            return _at_path(condition)


def _at_path(condition: AtPath) -> str:
    if condition.operator is Operator.EXISTS:
        return f"{condition.name} exists"
    values = _any(map(_literal, condition.literals))
    if condition.operator is Operator.IS:
        return f"{condition.name} is {values}"
    if condition.operator is Operator.IS_NOT:
        return f"{condition.name} is something other than {values}"
    return f"{condition.name} {_COMPARED[condition.operator]} {values}"


def _when(moments: Moments) -> str:
    after, before = moments.after, moments.before
    if after is not None and before is not None:
        if after.value == before.value:
            return f"at {_moment(after)}"
        return f"from {_moment(after)} to {'' if before.is_inclusive else 'before '}{_moment(before)}"
    if after is not None:
        if isinstance(after.value, timedelta):
            return f"in the last {format_duration(after.value)}"
        return f"{'at or after' if after.is_inclusive else 'after'} {_moment(after)}"
    if before is not None:
        if isinstance(before.value, timedelta):
            return f"more than {format_duration(before.value)} ago"
        return f"{'at or before' if before.is_inclusive else 'before'} {_moment(before)}"
    return "at any time"


def _moment(bound: Bound[datetime | timedelta]) -> str:
    if isinstance(bound.value, timedelta):
        return f"{format_duration(bound.value)} ago"
    moment = bound.value.astimezone(UTC)
    has_time = (moment.hour, moment.minute, moment.second, moment.microsecond) != (0, 0, 0, 0)
    return f"{moment.isoformat(sep=' ')[:19]} UTC" if has_time else f"{moment.date().isoformat()} UTC"


def _how_long(took: Took) -> str:
    if took.least is not None and took.most is not None:
        return f"from {format_duration(took.least.value)} to {format_duration(took.most.value)}"
    if took.least is not None:
        return (
            f"{'at least' if took.least.is_inclusive else 'longer than'} {format_duration(took.least.value)}"
        )
    if took.most is not None:
        return f"{'at most' if took.most.is_inclusive else 'less than'} {format_duration(took.most.value)}"
    return "any time"


def _literal(literal: Literal) -> str:
    if literal.is_prefix:
        return f"something that begins with {_quoted(literal.text)}"
    return _quoted(literal.text) if literal.is_quoted else literal.text


def _pattern(pattern: Pattern) -> str:
    return f"{pattern.text}…" if pattern.is_prefix else pattern.text


def _quoted(text: str) -> str:
    return f"“{text}”"


def _any(texts: Iterable[str]) -> str:
    *most, last = texts
    return f"{', '.join(most)} or {last}" if most else last
