"""The range of keys in which a search can find anything: keys are almost in order of the times of starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Max, Min

from engine.models import Instance
from engine.status.gathering import database_now
from engine.status.search import LONGEST_TRANSACTION, first_key
from engine.values.query.terms import Bound, Moments, Term


@dataclass(frozen=True, slots=True)
class Span:
    """A range of keys: from `low` up to but without `top`."""

    low: int
    top: int

    def below(self, key: int) -> Span:
        return Span(self.low, min(self.top, key))

    def above(self, key: int) -> Span:
        return Span(max(self.low, key + 1), self.top)

    @property
    def is_empty(self) -> bool:
        return self.low >= self.top


def span_of(terms: Sequence[Term]) -> Span:
    """Return the keys of all instances, or of those that started in the times that the terms name."""
    ends = Instance.objects.aggregate(Min("key"), Max("key"))
    found = Span(ends["key__min"] or 1, (ends["key__max"] or 0) + 1)
    started = [
        term.condition for term in terms if isinstance(term.condition, Moments) and not term.is_negated
    ]
    for condition in started:
        if condition.field == "started":
            found = _within(found, condition, database_now())
    return found


def _within(span: Span, moments: Moments, now: datetime) -> Span:
    low, top = span.low, span.top
    try:
        if moments.after is not None:
            low = max(
                low, first_key(Instance, "created_at", _moment(moments.after, now) - LONGEST_TRANSACTION)
            )
        if moments.before is not None:
            top = min(
                top, first_key(Instance, "created_at", _moment(moments.before, now) + LONGEST_TRANSACTION)
            )
    except OverflowError:  # a year that no instance can be from; the rows are compared anyway
        return span
    return Span(low, top)


def _moment(bound: Bound[datetime | timedelta], now: datetime) -> datetime:
    return now - bound.value if isinstance(bound.value, timedelta) else bound.value
