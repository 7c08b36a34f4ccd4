"""Keys in order of time, though instances are made one after another."""

from __future__ import annotations

import heapq
from collections.abc import Iterator


class Timeline:
    """Numbers rows. Those of events and the audit trail wait for their turn: lists rely on keys in order of time."""

    def __init__(self, first_keys: dict[str, int]) -> None:
        self._next = dict(first_keys)
        self._waiting: list[tuple[int, int, str, str]] = []
        self._added = 0

    def take(self, table: str) -> int:
        """Return the next key of a table."""
        key = self._next[table]
        self._next[table] = key + 1
        return key

    def add(self, table: str, us: int, rest: str) -> None:
        """Keep a row: its time, and its columns after the key."""
        self._added += 1  # rows of one time keep their order
        heapq.heappush(self._waiting, (us, self._added, table, rest))

    def until(self, us: int | None) -> Iterator[tuple[str, str]]:
        """Yield table and line of the rows before this time, oldest first; all if it is None."""
        while self._waiting and (us is None or self._waiting[0][0] < us):
            _, _, table, rest = heapq.heappop(self._waiting)
            yield table, f"{self.take(table)}\t{rest}\n"
