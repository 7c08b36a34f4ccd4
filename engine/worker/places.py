"""Where the shifts of a cluster sit."""

from __future__ import annotations

import time

from engine.worker.locks import Locks

# How long to try for a place that looks taken: whoever counts the places holds each for a moment.
PATIENCE = 0.05


class Places:
    """The places for shifts in one cluster, as many as it runs at most, known to every process forked afterwards.

    A shift locks its place while it runs, and is gone from it with its process, so counting the places tells which
    shifts really run, and asks no database.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._locks = Locks()

    def take(self, place: int) -> bool:
        """Sit down, unless another process sits there."""
        give_up = time.monotonic() + PATIENCE
        while not self._locks.take(place):
            if time.monotonic() > give_up:
                return False
            time.sleep(0.002)
        return True

    def leave(self, place: int) -> None:
        self._locks.release(place)

    def taken(self) -> frozenset[int]:
        """Return the places where other processes sit; a process does not see its own."""
        return frozenset(place for place in range(self.count) if self._locks.is_taken(place))
