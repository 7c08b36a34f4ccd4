"""A flag between processes that no killed process can leave locked."""

from __future__ import annotations

import math
import select
from multiprocessing import Pipe


class Latch:
    """Say once that something is so, to every process forked afterwards; takes the place of
    multiprocessing.Event.

    An Event holds locks: a process killed in `is_set()` or `wait()` keeps them, and the next `set()`, say
    that of the signal handler that stops the cluster, waits for ever. A latch is a pipe, set as long as it
    holds a byte, which nobody ever reads. An event loop can watch it: it has a `fileno()`.
    """

    def __init__(self) -> None:
        self._reader, self._writer = Pipe(duplex=False)

    def set(self) -> None:
        if not self.is_set():
            self._writer.send_bytes(b"set")

    def is_set(self) -> bool:
        return self.wait(0)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, at most `timeout` seconds; tell whether it is."""
        poll = select.poll()
        poll.register(self._reader.fileno(), select.POLLIN)
        return bool(poll.poll(None if timeout is None else math.ceil(timeout * 1000)))

    def fileno(self) -> int:
        return self._reader.fileno()

    __call__ = is_set
