"""Limit the history that a worker holds in memory and reads at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.replay.host import Claimed
from engine.replay.records.history import History

MOST_BYTES = 256 * 1024 * 1024  # held, as texts: a worker with this much claims nothing more
PORTION_BYTES = (
    1024 * 1024
)  # read by one statement, as stored: compressed, so up to 90 times as much in memory
ROW_BYTES = 1024  # the approximate size of a step without values


class Memory:
    """Counts the size of the histories that a shift holds.

    The first claimed instance is accepted whatever its size, so that nothing is too large to run; so a worker holds up
    to MOST_BYTES plus one portion.
    """

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], int] = {}
        self._bytes = 0
        self._typical = 0.0

    @property
    def is_full(self) -> bool:
        return self._bytes >= MOST_BYTES

    def room(self, limit: int) -> int:
        """Return how many instances of recent size fit, from one to this limit."""
        if self._typical * limit <= MOST_BYTES - self._bytes:
            return limit
        return max(1, int((MOST_BYTES - self._bytes) / self._typical))

    def take(self, one: Claimed, history: History) -> None:
        size = len(one.params) + _size(history)
        self._held[one.key, one.fence] = size
        self._bytes += size
        self._typical += (size - self._typical) / 8

    def forget(self, one: Claimed) -> None:
        self._bytes -= self._held.pop((one.key, one.fence), 0)


def portion(claims: Sequence[Claimed], stored: Mapping[int, int]) -> list[Claimed]:
    """Return the first of them, and the following ones that are read with it."""
    size, count = 0, 0
    for one in claims:
        size += stored.get(one.key, 0)
        if count and size > PORTION_BYTES:
            break
        count += 1
    return list(claims[:count])


def _size(history: History) -> int:
    return sum(
        ROW_BYTES + len(record.output or "") + len(record.error or "") for record in history.steps.values()
    )
