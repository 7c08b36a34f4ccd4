"""The shared deadline between django-q's sentinel and one of its workers."""

from __future__ import annotations

import mmap
import os
import struct
import time
from types import TracebackType

from engine.worker.cluster.process_locks import Locks

NUMBER = struct.Struct("d")


class Deadline:
    """The state of a worker: the seconds left for its task, 0 out of time, -1 idle, -2 recycled.

    Replaces `multiprocessing.Value`, whose lock stays locked when a worker is killed while it passes on a result; the
    sentinel then waits for it forever and guards no worker. The kernel releases the record locks of dead processes.
    """

    def __init__(self, typecode: str, value: float) -> None:
        self._memory = mmap.mmap(-1, NUMBER.size)
        self._lock = DeadlineLock()
        self._maker = os.getpid()
        NUMBER.pack_into(self._memory, 0, value)

    @property
    def value(self) -> float:
        kept = float(NUMBER.unpack_from(self._memory)[0])
        return max(kept - time.monotonic(), 0.0) if kept > 0 else kept

    @value.setter
    def value(self, value: float) -> None:
        # The sentinel, which made this, only counts down by the length of its cycle, and compares with exactly 0. A
        # clock is more precise: most steps would miss 0, and the guard loop also wakes up between two cycles.
        if os.getpid() == self._maker:
            return
        with self._lock:
            NUMBER.pack_into(self._memory, 0, time.monotonic() + value if value > 0 else value)

    def get_lock(self) -> DeadlineLock:
        return self._lock


class DeadlineLock:
    """A lock that ends with its holder. Re-entrant; for one thread of each process."""

    def __init__(self) -> None:
        self._locks = Locks()
        self._depth = 0

    def __enter__(self) -> DeadlineLock:
        if self._depth == 0:
            self._locks.wait(0)
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._locks.release(0)
