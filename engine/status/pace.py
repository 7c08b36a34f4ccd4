"""How many steps are recorded in a minute, from PostgreSQL's own counters: no row is read, whatever the tables hold.

One reading of a counter is no rate. This process remembers the readings of the last minutes; the first has no answer.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field

from django.db import connection

WINDOW_SECONDS = 300.0
APART_SECONDS = 2.0  # between two readings that are kept
LEAST_SECONDS = 4.0  # a rate over less says little

_COUNT = "SELECT pg_stat_get_tuples_inserted(to_regclass('engine_step'))"


@dataclass(slots=True)
class Readings:
    """Readings of a counter that only grows."""

    kept: deque[tuple[float, int]] = field(default_factory=deque)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def per_minute(self, at: float, count: int) -> float | None:
        """Add a reading, and return the rate over the window, or None if there is no earlier one."""
        with self.lock:
            if self.kept and count < self.kept[-1][1]:  # its statistics were reset
                self.kept.clear()
            while self.kept and at - self.kept[0][0] > WINDOW_SECONDS:
                self.kept.popleft()
            first_at, first = self.kept[0] if self.kept else (at, count)
            if not self.kept or at - self.kept[-1][0] >= APART_SECONDS:
                self.kept.append((at, count))
        return (count - first) * 60 / (at - first_at) if at - first_at >= LEAST_SECONDS else None


_readings = Readings()


def steps_per_minute() -> float | None:
    """Return how many steps of all workflows started in a minute, over at most the last five; None at first."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT)
        (count,) = cursor.fetchone() or (None,)
    return None if count is None else _readings.per_minute(time.monotonic(), int(count))
