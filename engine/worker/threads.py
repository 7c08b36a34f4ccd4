"""Threads for sync bodies: few, kept, and never waited for at exit."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

BUSY_SECONDS = 0.1


class Threads:
    """Up to `size` daemon threads, started when needed.

    Not a ThreadPoolExecutor: the interpreter joins its threads at exit, and one that is stuck in a body would keep the
    worker alive for ever. Each thread keeps its Django connection, which is the reason for keeping threads at all.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0
        self._free = 0
        self._ended_at = 0.0  # the last job
        self.stuck = 0  # threads whose body outlived its timeout

    @property
    def all_stuck(self) -> bool:
        return self.stuck >= self._size

    @property
    def is_saturated(self) -> bool:
        """Tell whether a job would have to wait: no thread is free, and none has become free for a while."""
        is_full = self._free <= 0 and self._started >= self._size
        return is_full and time.monotonic() - self._ended_at > BUSY_SECONDS

    def submit(self, job: Callable[[], None]) -> None:
        """Run the job on a thread; it must not raise."""
        with self._lock:
            if self._free == 0 and self._started < self._size:
                self._started += 1
                threading.Thread(target=self._work, name=f"body-{self._started}", daemon=True).start()
            else:
                self._free -= 1
        self._jobs.put(job)

    def stop(self) -> None:
        """Let idle threads end."""
        for _ in range(self._started):
            self._jobs.put(None)

    def _work(self) -> None:
        from django.db import connections

        while (job := self._jobs.get()) is not None:
            job()
            with self._lock:
                self._free += 1
                self._ended_at = time.monotonic()
        connections.close_all()
