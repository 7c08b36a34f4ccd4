"""A range of keys of instances."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet

from engine.models import Instance


@dataclass(frozen=True, slots=True)
class Span:
    """The keys from `low` up to but without `top`."""

    low: int
    top: int

    def below(self, key: int) -> Span:
        return Span(self.low, min(self.top, key))

    def above(self, key: int) -> Span:
        return Span(max(self.low, key + 1), self.top)

    def of(self, rows: QuerySet[Instance]) -> QuerySet[Instance]:
        """Return those of the rows that have such keys."""
        return rows.filter(key__gte=self.low, key__lt=self.top)

    @property
    def is_empty(self) -> bool:
        return self.low >= self.top
