"""Threads for sync bodies: few, kept, and never waited for at exit."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


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
        self.stuck = 0  # threads whose body outlived its timeout

    @property
    def all_stuck(self) -> bool:
        return self.stuck >= self._size

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
        connections.close_all()
