"""The database's clock, followed by a worker between its statements."""

from __future__ import annotations

import time
from collections.abc import Callable

SET_US = 1_000_000  # the database's clock by so much at once, or more: then somebody has set it
DRIFT = 1000  # what two clocks go apart in a second at most, as parts of it: twice what NTP slews


def _pick() -> int:
    try:
        time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    except (AttributeError, OSError):
        return time.CLOCK_MONOTONIC
    return time.CLOCK_BOOTTIME


CLOCK = _pick()  # the one that goes on while the machine is suspended, where the platform has it


def ticks_ns() -> int:
    """Return nanoseconds on a clock that nobody sets."""
    return time.clock_gettime_ns(CLOCK)


class DatabaseClock:
    """Tells the database's time from its last answers and a clock of this machine that nobody sets.

    An answer carries a time that was read between sending and receiving, so the true time lies between two bounds a
    round trip apart, and between those of the answers before, as far as the clocks can have drifted since: one slow
    answer does not make the time vague. Deadlines are set by the late bound and judged by the early one: nothing fires
    too soon, whatever this machine's own clock says.
    """

    def __init__(self, on_set: Callable[[], None] = lambda: None) -> None:
        self._on_set = on_set  # called when somebody has set the database's clock
        self._early = 0
        self._late = 0
        self._set_at: int | None = None
        self._last = 0
        self._last_due = 0

    def set(self, database_us: int, *, sent_ns: int, received_ns: int) -> None:
        """Take in an answer that said `database_us`."""
        early, late = database_us - received_ns // 1000, database_us - sent_ns // 1000
        is_set = False
        if self._set_at is not None:
            drift = max(0, received_ns - self._set_at) // (1000 * DRIFT)
            both = max(early, self._early - drift), min(late, self._late + drift)
            is_back = late < self._early - drift - SET_US
            is_set = is_back or early > self._late + drift + SET_US
            if is_back:
                self._last = self._last_due = 0
            # Apart, one of the clocks was set, or it is another server: the new answer is right.
            early, late = both if both[0] <= both[1] else (early, late)
        self._early, self._late, self._set_at = early, late, received_ns
        if is_set:
            self._on_set()

    def now_us(self) -> int:
        """Return the time, not earlier than it is, and never earlier than it was said to be before.

        Unless the database's clock was set back: else time would stand still here until that is made up for.
        """
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
