"""The database's clock, followed by a worker between its statements."""

from __future__ import annotations

import time


def _pick() -> int:
    try:
        time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    except (AttributeError, OSError):
        return time.CLOCK_MONOTONIC
    return time.CLOCK_BOOTTIME


CLOCK = _pick()  # the one that goes on while the machine is suspended, where the platform has it
SLOW_US = 1_000_000  # an answer that took longer tells the time too vaguely


def ticks_ns() -> int:
    """Return nanoseconds on a clock that nobody sets."""
    return time.clock_gettime_ns(CLOCK)


class DatabaseClock:
    """Tells the database's time from its last answers and a clock of this machine that nobody sets.

    An answer carries a time that was read between sending and receiving, so the true time lies between two bounds a
    round trip apart. Deadlines are set by the late bound and judged by the early one: nothing fires too soon, whatever
    this machine's own clock says. Where a statement was long on its way, say because the worker was stopped, its late
    bound lies in the future; such an answer counts only if it contradicts what is known.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._early = 0
        self._late = 0
        self._last = 0
        self._last_due = 0

    def set(self, database_us: int, *, sent_ns: int, received_ns: int) -> None:
        """Take in an answer that said `database_us`."""
        late = database_us - sent_ns // 1000
        early = database_us - received_ns // 1000
        agrees = self._is_set and early <= self._late and self._early <= late
        if agrees and late - early > SLOW_US:
            return
        self._early, self._late, self._is_set = early, late, True

    def now_us(self) -> int:
        """Return the time, not earlier than it is, and never earlier than it was said to be before."""
        self._last = max(self._last, ticks_ns() // 1000 + self._late)
        return self._last

    def due_us(self) -> int:
        """Return the time, not later than it is, and never earlier than it was said to be before.

        A slow answer moves the early bound back; what was due must stay so, or a deadline that fired is not met.
        """
        self._last_due = max(self._last_due, ticks_ns() // 1000 + self._early)
        return self._last_due

    def seconds_until(self, when_us: int) -> float:
        """Return how long to wait until `when_us` is due; 0 if it is."""
        return max(0.0, (when_us - self.due_us()) / 1_000_000)
