"""Wait until an instance has ended: how often to look, and for how long."""

from __future__ import annotations

import time

from studio.client.answers import Record, Whole
from studio.client.call import Call
from studio.client.errors import WaitTimeoutError
from studio.client.operations.reading import instance

FINAL = frozenset(("complete", "errored", "terminated"))
FIRST, LONGEST, GROWTH = 0.2, 5.0, 1.5


class Waiting:
    """Looks often at first, then less often. Does no input or output."""

    def __init__(self, workflow: str, id: str, timeout: float | None) -> None:
        self.call: Call[Record] = instance(workflow, id, limit=1)
        self._name, self._timeout = f"{workflow}/{id}", timeout
        self._until = None if timeout is None else time.monotonic() + timeout
        self._pause = FIRST

    def pause_after(self, found: Whole) -> float | None:
        """Return the seconds until the next look, or None if it has ended. Raises WaitTimeoutError."""
        if found["status"] in FINAL:
            return None
        pause, self._pause = self._pause, min(self._pause * GROWTH, LONGEST)
        if self._until is None:
            return pause
        left = self._until - time.monotonic()
        if left <= 0:
            raise WaitTimeoutError(f"{self._name} is {found['status']} after {self._timeout:g} s.")
        return min(pause, left)
