"""The database's clock, estimated by a worker between its statements."""

from __future__ import annotations

import time
from collections.abc import Callable

SET_US = 1_000_000  # a jump of the database's clock by at least this much means that it was set
DRIFT = 1000  # the maximum relative drift of two clocks: twice what NTP slews


def _pick() -> int:
    try:
        time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    except (AttributeError, OSError):
        return time.CLOCK_MONOTONIC
    return time.CLOCK_BOOTTIME


CLOCK = _pick()  # a clock that continues while the machine is suspended, if the platform has one


def ticks_ns() -> int:
    """Return nanoseconds on a clock that is never set."""
    return time.clock_gettime_ns(CLOCK)


class DatabaseClock:
    """Estimates the database's time from its last answers and a local clock that is never set.

    An answer contains a time read between sending and receiving, so the true time is between two bounds one round trip
    apart, and between those of earlier answers, widened by the possible drift since: one slow answer does not make the
    estimate imprecise. Deadlines are set by the late bound and checked against the early one: nothing fires too early,
    whatever this machine's own clock says.
    """

    def __init__(self, on_set: Callable[[], None] = lambda: None) -> None:
        self._on_set = on_set  # called when the database's clock was set
        self._early = 0
        self._late = 0
        self._set_at: int | None = None
        self._last = 0
        self._last_due = 0

    def set(self, database_us: int, *, sent_ns: int, received_ns: int) -> None:
        """Update the bounds with an answer that contained `database_us`."""
        early, late = database_us - received_ns // 1000, database_us - sent_ns // 1000
        is_set = False
        if self._set_at is not None:
            drift = max(0, received_ns - self._set_at) // (1000 * DRIFT)
            both = max(early, self._early - drift), min(late, self._late + drift)
            is_back = late < self._early - drift - SET_US
            is_set = is_back or early > self._late + drift + SET_US
            if is_back:
                self._last = self._last_due = 0
            # If the bounds do not overlap, a clock was set, or it is another server: the new answer is right.
            early, late = both if both[0] <= both[1] else (early, late)
        self._early, self._late, self._set_at = early, late, received_ns
        if is_set:
            self._on_set()

    def now_us(self) -> int:
        """Return the late bound of the time. It never goes back.

        Except if the database's clock was set back: otherwise time would stand still here until the clock catches up.
        """
        self._last = max(self._last, ticks_ns() // 1000 + self._late)
        return self._last

    def due_us(self) -> int:
        """Return the early bound of the time. It never goes back.

        A slow answer moves the early bound back, but what was due must stay due, or a deadline would fire and then not
        be met.
        """
        self._last_due = max(self._last_due, ticks_ns() // 1000 + self._early)
        return self._last_due

    def seconds_until(self, when_us: int) -> float:
        """Return how long to wait until `when_us` is due; 0 if it is."""
        return max(0.0, (when_us - self.due_us()) / 1_000_000)
