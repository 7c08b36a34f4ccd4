"""Where the shifts of a cluster sit."""

from __future__ import annotations

import fcntl
import tempfile
import time

# How long to try for a place that looks taken: whoever counts the places holds each for a moment.
PATIENCE = 0.05


class Places:
    """The places for shifts in one cluster, as many as it runs at most, known to every process forked
    afterwards.

    A shift locks its place while it runs; the kernel frees it when the process ends, however it ends, so
    counting them tells which shifts really run, and asks no database.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._file = tempfile.TemporaryFile(prefix="reprise-places-")  # noqa: SIM115

    def take(self, place: int) -> bool:
        """Sit down, unless another process sits there."""
        give_up = time.monotonic() + PATIENCE
        while not self._lock(place, fcntl.LOCK_EX):
            if time.monotonic() > give_up:
                return False
            time.sleep(0.002)
        return True

    def leave(self, place: int) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)

    def taken(self) -> frozenset[int]:
        """Return the places where other processes sit; a process does not see its own."""
        return frozenset(place for place in range(self.count) if not self._is_free(place))

    def _is_free(self, place: int) -> bool:
        if not self._lock(place, fcntl.LOCK_SH):
            return False
        self.leave(place)
        return True

    def _lock(self, place: int, kind: int) -> bool:
        try:
            fcntl.lockf(self._file, kind | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):
            return False
        return True
