"""Return memory to the system once a burst of instances is over."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

QUIET_SECONDS = 1.0  # without an instance, before memory is returned
GROWTH_KB = 2 * 1024  # since memory was last returned; less is not worth the time
# Of the time, at most one part in so many: where user code keeps millions of objects, a collection takes a second.
RARELY = 100


def memory_kb() -> int:
    """Return the memory of this process, or 0 if it is unknown."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def return_memory() -> None:
    """Free what only the garbage collector can, and give what the allocator keeps back to the system.

    A cycle and its parts refer to each other, so hundreds of them wait for the next full collection after they have
    left, with their outputs. What was loaded before the fork is frozen, so a collection takes milliseconds.
    """
    gc.collect()
    trim = _find_trim()
    if trim is not None:
        trim(0)


class IdleMemory:
    """Decides when a shift returns memory: after it has grown, and never while it holds instances."""

    def __init__(
        self,
        act: Callable[[], None] = return_memory,
        measure: Callable[[], int] = memory_kb,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._act = act
        self._measure = measure
        self._lowest_kb: int | None = None  # when memory was last returned
        self._has_claimed = False  # since the last look
        self._has_worked = False  # since memory was last looked at
        self._busy_at = float("-inf")
        self._not_before = float("-inf")

    def claimed(self, instances: int) -> None:
        """Take note of how many instances were claimed just now."""
        self._has_claimed = self._has_claimed or bool(instances)

    def look(self, *, held: int) -> None:
        """Return memory if a burst is over. Called several times a second."""
        now = self._clock()
        if self._lowest_kb is None:
            self._lowest_kb = self._measure()
        if held or self._has_claimed:
            self._busy_at, self._has_worked, self._has_claimed = now, True, False
        if not self._has_worked or now < max(self._busy_at + QUIET_SECONDS, self._not_before):
            return
        self._has_worked = False
        if self._measure() > self._lowest_kb + GROWTH_KB:
            self._act()
            self._not_before = now + RARELY * (self._clock() - now)
            self._lowest_kb = self._measure()


def _find_trim() -> Callable[[int], int] | None:
    """Return glibc's `malloc_trim`; None where the C library has none."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
