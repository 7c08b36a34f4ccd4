"""When a worker is to be replaced by a fresh one: it is old, it is large, or bodies in it never return."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Protocol

from engine.worker.threads import Threads

log = logging.getLogger("engine.shift")

LONGEST_SECONDS = 3600.0  # what user code leaks is given back once an hour
STUCK_SECONDS = 10.0  # a body that has outlived its timeout may still return
LOOK_SECONDS = 1.0


class Relief(Protocol):
    """How a worker has another one take its place, while it finishes what it holds."""

    @property
    def max_memory_kb(self) -> int | None:
        """Return how much memory a worker may take."""

    def call(self, *, must: bool) -> bool:
        """Have this worker replaced; tell whether it is. Unless it `must`, it may have to wait for its turn."""


class Retirement:
    """Looks after one worker, and has it replaced when it is time."""

    def __init__(self, relief: Relief | None, threads: Threads) -> None:
        self._relief = relief
        self._threads = threads
        self._ends_at = time.monotonic() + LONGEST_SECONDS
        self._stuck_at = float("inf")
        self._look_at = 0.0
        self.has_begun = False

    def look(self) -> bool:
        """Tell whether this worker's place is another's from now on. Called several times a second."""
        if self._relief is None or self.has_begun or time.monotonic() < self._look_at:
            return self.has_begun
        self._look_at = time.monotonic() + LOOK_SECONDS
        self._note_stuck()
        if must := self._must():
            self.has_begun = self._relief.call(must=True)
            log.warning("This worker is replaced: %s", must)
        elif may := self._may():
            self.has_begun = self._relief.call(must=False)
            if self.has_begun:
                log.info("This worker is replaced: %s", may)
        return self.has_begun

    def _note_stuck(self) -> None:
        if not self._threads.stuck:
            self._stuck_at = float("inf")
        elif self._stuck_at == float("inf"):
            self._stuck_at = time.monotonic() + STUCK_SECONDS

    def _must(self) -> str:
        if self._threads.all_stuck:
            return "none of its threads returns."
        if time.monotonic() >= self._stuck_at:
            return f"bodies that have outlived their timeout keep {self._threads.stuck} of its threads."
        return ""

    def _may(self) -> str:
        memory, most = _memory_kb(), self._relief.max_memory_kb if self._relief else None
        if most is not None and memory > most:
            return f"it has grown to {memory} KiB, the limit is {most}."
        if time.monotonic() >= self._ends_at:
            return f"it has worked for {LONGEST_SECONDS:g} s."
        return ""


def _memory_kb() -> int:
    """Return what this process has in memory; 0 where that cannot be told."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024
