"""Look at instances in portions, from the newest or the oldest on, up to a number of rows and a time.

Where a portion ends is asked of the primary key alone: the rows themselves are read once, when they are searched.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from django.db.models import QuerySet

from engine.models import Instance
from engine.status.searching.span import Span

WINDOW = 100_000  # instances that one request looks at
FIRST = 1_000  # of these in the first portion; each later one has up to five times as many
LARGEST = 25_000
LONGEST_S = 0.6

RowsIn = Callable[[Span], QuerySet[Instance]]


@dataclass(frozen=True, slots=True)
class Seconds:
    """The time that one request takes to look."""

    began: float = field(default_factory=time.monotonic)

    def rows_in_time(self, looked_at: int) -> int:
        """Return how many more rows can be looked at in time, as fast as so many were so far."""
        took = max(time.monotonic() - self.began, 0.001)
        return int(looked_at / took * (LONGEST_S - took))


class Portions:
    """The rows within a span of keys, looked at in one direction."""

    def __init__(
        self,
        rows: QuerySet[Instance],
        span: Span,
        *,
        unseen: QuerySet[Instance] | None = None,
        is_down: bool,
        most: int,
        time: Seconds,
    ) -> None:
        """`unseen` are all others, if there are few of them and an index finds them."""
        self._rows, self._left, self._is_down, self._most, self._time = rows, span, is_down, most, time
        self._unseen, self._most_unseen = unseen, 0.5  # of a portion
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

    def find(self, wanted: int, rows_in: RowsIn) -> list[int]:
        """Return the keys of the first rows that match: `rows_in` returns those within a part of the span."""
        found = list[int]()
        while len(found) < wanted and self._goes_on():
            part = self._next()
            # Neither ordered nor limited: the planner would then look at one row after the other.
            rows = rows_in(part).order_by()
            found += sorted(rows.values_list("key", flat=True), reverse=self._is_down)
        return found[:wanted]

    def whole(self) -> Span:
        """Take the whole window at once. Return its keys."""
        self._size, self._most_unseen = self._most, 0.0
        return self._next()

    def _goes_on(self) -> bool:
        if self.is_over or self.looked_at >= self._most:
            return False
        if self.looked_at:
            self._size = min(self._size, self._time.rows_in_time(self.looked_at))
        return self._size > 0

    def _next(self) -> Span:
        """Take the keys of the next portion of rows."""
        size = min(self._size, self._most - self.looked_at)
        self._size = min(self._size * 5, LARGEST)
        part = self._end_by_keys(size) or self._end_by_rows(size)
        over = Span(self._left.top, self._left.top)
        if part is None:
            self.looked_at += self._left.of(self._rows).count()
            part, self._left = self._left, over
        elif self._is_down:
            self._left = Span(self._left.low, part.low)
        else:
            self._left = Span(part.top, self._left.top)
        return part

    def _end_by_keys(self, size: int) -> Span | None:
        """Return the portion with so many rows, seen or not; None if there are too few, or too many are not seen."""
        if self._unseen is None or size < FIRST:  # what the unseen leave of a window is soon less
            return None
        part = self._part(Instance.objects.all(), size)
        unseen = 0 if part is None else part.of(self._unseen).count()
        if part is None or unseen > size * self._most_unseen:
            return None
        self.looked_at += size - unseen
        return part

    def _end_by_rows(self, size: int) -> Span | None:
        """Return the portion with so many rows that may be seen; None if there are not as many."""
        part = self._part(self._rows, size)
        self.looked_at += size if part is not None else 0
        return part

    def _part(self, rows: QuerySet[Instance], size: int) -> Span | None:
        keys = self._left.of(rows).order_by("-key" if self._is_down else "key").values_list("key", flat=True)
        last = keys[size - 1 : size].first()
        if last is None:
            return None
        return Span(last, self._left.top) if self._is_down else Span(self._left.low, last + 1)
