"""Look at instances in portions, from the newest or the oldest on, up to a number of rows and a time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from django.db.models import QuerySet

from engine.models import Instance
from engine.status.searching.bounds import Span

WINDOW = 100_000  # instances that one request looks at
FIRST = 2_000  # of these in the first portion; each later one has five times as many
LARGEST = 25_000
LONGEST_S = 0.7


@dataclass(frozen=True, slots=True)
class Seconds:
    """The time that one request takes to look."""

    ends: float = field(default_factory=lambda: time.monotonic() + LONGEST_S)

    @property
    def are_over(self) -> bool:
        return time.monotonic() >= self.ends


class Portions:
    """The rows of a search within a span of keys, looked at in one direction."""

    def __init__(
        self, rows: QuerySet[Instance], span: Span, *, is_down: bool, most: int, time: Seconds
    ) -> None:
        self._rows, self._left, self._is_down, self._most, self._time = rows, span, is_down, most, time
        self._size = FIRST
        self.looked_at = 0

    @property
    def is_over(self) -> bool:
        """Whether everything has been looked at."""
        return self._left.is_empty

    @property
    def reached(self) -> int:
        """The key from which to go on: everything before it, in this direction, has been looked at."""
        return self._left.top if self._is_down else self._left.low - 1

    def find(self, wanted: int) -> list[int]:
        """Return the keys of the first rows that match."""
        found = list[int]()
        order = "-key" if self._is_down else "key"
        while len(found) < wanted and self._goes_on():
            part = self._next()
            rows = self._rows.filter(key__gte=part.low, key__lt=part.top).order_by(order)
            found += rows.values_list("key", flat=True)[: wanted - len(found)]
        return found

    def whole(self) -> Span:
        """Take the whole window at once. Return its keys."""
        self._size = self._most
        return self._next()

    def _goes_on(self) -> bool:
        return (
            not self.is_over and self.looked_at < self._most and not (self.looked_at and self._time.are_over)
        )

    def _next(self) -> Span:
        """Take the keys of the next portion of rows."""
        size = min(self._size, self._most - self.looked_at)
        self._size = min(self._size * 5, LARGEST)
        left = Instance.objects.filter(key__gte=self._left.low, key__lt=self._left.top)
        keys = left.order_by("-key" if self._is_down else "key").values_list("key", flat=True)
        last = keys[size - 1 : size].first()
        if last is None:
            self.looked_at += left.count()
            part, self._left = self._left, Span(self._left.top, self._left.top)
        elif self._is_down:
            self.looked_at += size
            part, self._left = Span(last, self._left.top), Span(self._left.low, last)
        else:
            self.looked_at += size
            part, self._left = Span(self._left.low, last + 1), Span(last + 1, self._left.top)
        return part
