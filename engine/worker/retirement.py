"""When a worker is replaced by a new one: it is old, it is large, or its bodies never return."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from itertools import chain
from typing import Protocol

from engine.worker.bodies.attempt import Bodies
from engine.worker.idle_memory import memory_kb

log = logging.getLogger("engine.shift")

LONGEST_SECONDS = 3600.0  # memory leaked by user code is freed once an hour
STUCK_SECONDS = 10.0  # a body that has outlived its timeout may still return
LOOK_SECONDS = 1.0
NAMED = 5  # bodies, in the log


class Relief(Protocol):
    """How a worker is replaced while it finishes what it holds."""

    @property
    def max_memory_kb(self) -> int | None:
        """Return how much memory a worker may use."""

    def call(self, *, must: bool) -> bool:
        """Request the replacement of this worker. Return whether it is granted; unless it `must`, it may not be."""


class Retirement:
    """Watches one worker, and has it replaced in time."""

    def __init__(self, relief: Relief | None, bodies: Bodies, *, earlier: Iterable[Bodies] = ()) -> None:
        self._relief = relief
        self._bodies = bodies
        self._earlier = tuple(earlier)  # of earlier shifts in this process that lost their database
        self._ends_at = time.monotonic() + LONGEST_SECONDS
        self._overdue: dict[str, float] = {}  # abandoned bodies: since when
        self._look_at = 0.0
        self.has_begun = False
        self.trouble = ""  # why it cannot continue, if that is the reason

    def look(self) -> bool:
        """Return whether another worker replaces this one from now on. Called several times a second."""
        if self._relief is None or self.has_begun or time.monotonic() < self._look_at:
            return self.has_begun
        self._look_at = time.monotonic() + LOOK_SECONDS
        if stuck := self._stuck():
            self.has_begun = self._relief.call(must=True)
            self.trouble = f"These bodies do not return: {'; '.join(stuck[:NAMED])}"
        elif reason := self._may():
            self.has_begun = self._relief.call(must=False)
            if self.has_begun:
                log.info("This worker is being replaced: %s", reason)
        return self.has_begun

    def _stuck(self) -> list[str]:
        """Return the bodies that have exceeded their time for too long, or all of them if no thread is left."""
        now = time.monotonic()
        overdue = chain.from_iterable(bodies.overdue for bodies in (*self._earlier, self._bodies))
        self._overdue = {name: self._overdue.get(name, now) for name in overdue}
        if self._bodies.all_stuck:
            return list(self._overdue)
        return [name for name, since in self._overdue.items() if now - since >= STUCK_SECONDS]

    def _may(self) -> str:
        memory, most = memory_kb(), self._relief.max_memory_kb if self._relief else None
        if most is not None and memory > most:
            return f"it has grown to {memory} KiB, the limit is {most}."
        if time.monotonic() >= self._ends_at:
            return f"it has run for {LONGEST_SECONDS:g} s."
        return ""
