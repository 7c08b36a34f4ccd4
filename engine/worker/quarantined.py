"""Instances that must run alone: after a worker has died with one of them, nobody knows which one killed it."""

from __future__ import annotations

import asyncio
from enum import StrEnum

from engine.replay.cycle import Cycle
from engine.worker.cycle_host import CycleHost
from engine.worker.database.reader import Reader

HARMLESS_SECONDS = 10.0  # after so long alone, an instance counts as harmless


class TakesQuarantined(StrEnum):
    """Whether a shift takes the instances that must run alone.

    A shift in a cluster never does: one long body would keep it from all other work, and the cluster has processes for
    them, which take nothing else. Without a cluster it does when it has nothing else.
    """

    NEVER = "never"
    WHEN_EMPTY = "when_empty"
    ONLY = "only"


class Quarantined:
    """Observes the instances that must run alone, one after the other."""

    def __init__(self, host: CycleHost, reader: Reader, takes_quarantined: TakesQuarantined) -> None:
        self.is_only = takes_quarantined is TakesQuarantined.ONLY
        self.is_wanted = False  # there may be one to take
        self._host = host
        self._reader = reader
        self._takes_quarantined = takes_quarantined
        self._observed: Cycle | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def is_under_way(self) -> bool:
        """Tell whether one is being observed, beside which nothing else may run."""
        return self._observed is not None

    def look_again(self) -> None:
        """Look for one that must run alone, if this shift takes such."""
        self.is_wanted = self._takes_quarantined is not TakesQuarantined.NEVER

    def is_possible(self, *, is_saturated: bool) -> bool:
        """Tell whether one that must run alone can be observed here: beside those that were, in a process for these."""
        if self._observed is not None:
            return False
        if self.is_only:
            # One without a body is about to leave: the next one will be alone in a moment.
            return not is_saturated and all(cycle.steps.bodies for cycle in self._host.cycles.values())
        return not self._host.cycles

    def observe(self, cycle: Cycle | None) -> None:
        """Observe one that was taken, until it has run alone for long enough."""
        self._observed = cycle
        if cycle is not None:
            self._loop.call_later(HARMLESS_SECONDS, self._clear, cycle)

    async def run_beside(self) -> None:
        """Whichever kills this worker from now on, what runs here was not alone."""
        if any(cycle.has_quarantined_body for cycle in self._host.cycles.values()):
            for cycle in self._host.cycles.values():
                cycle.run_beside()
            await self._reader.run_beside()

    def _clear(self, cycle: Cycle) -> None:
        """It has run alone for long enough: others may run beside it."""
        if self._observed is cycle:
            cycle.clear()
            cycle.start_deferred()

    def end(self, cycle: Cycle) -> bool:
        """Observe this one no more; tell whether it was the one."""
        if self._observed is not cycle:
            return False
        self._observed = None
        self.is_wanted = True
        return True

    def left(self, cycle: Cycle) -> None:
        """Take note that an instance has left: a process for those that must run alone looks for the next one."""
        self.end(cycle)
        self.is_wanted = self.is_wanted or self.is_only
