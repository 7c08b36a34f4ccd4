"""Quarantined instances run alone: when a worker dies with several, it is unknown which of them killed it."""

from __future__ import annotations

import asyncio
from enum import StrEnum

from engine.replay.cycle import Cycle
from engine.worker.cycle_host import CycleHost
from engine.worker.database.reader import Reader

HARMLESS_SECONDS = 10.0  # in quarantine, after which an instance counts as harmless


class TakesQuarantined(StrEnum):
    """Whether a shift takes quarantined instances, which must run alone.

    A shift in a cluster never does: one long body would keep it from all other work, and the cluster has processes for
    them, which take nothing else. Without a cluster it does when it has nothing else.
    """

    NEVER = "never"
    WHEN_EMPTY = "when_empty"
    ONLY = "only"


class Quarantined:
    """Observes quarantined instances, one after the other."""

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
        """Return whether one is being observed: nothing else may run beside it."""
        return self._observed is not None

    def look_again(self) -> None:
        """Look for a quarantined instance at the next claim, if this shift takes them."""
        self.is_wanted = self._takes_quarantined is not TakesQuarantined.NEVER

    def is_possible(self, *, is_saturated: bool) -> bool:
        """Return whether one can be observed now: in an empty shift, or in a quarantine process beside earlier ones."""
        if self._observed is not None:
            return False
        if self.is_only:
            # One without a body is about to leave: the next one will be alone in a moment.
            return not is_saturated and all(cycle.steps.bodies for cycle in self._host.cycles.values())
        return not self._host.cycles

    def observe(self, cycle: Cycle | None) -> None:
        """Observe one that was claimed, until it has run alone for long enough."""
        self._observed = cycle
        if cycle is not None:
            self._loop.call_later(HARMLESS_SECONDS, self._clear, cycle)

    async def run_beside(self) -> None:
        """Record that the bodies that run here are no longer alone: a crash no longer counts against them."""
        if any(cycle.has_quarantined_body for cycle in self._host.cycles.values()):
            for cycle in self._host.cycles.values():
                cycle.run_beside()
            await self._reader.run_beside()

    def _clear(self, cycle: Cycle) -> None:
        """Let others run beside it: it has run alone for long enough."""
        if self._observed is cycle:
            cycle.clear()
            cycle.start_deferred()

    def end(self, cycle: Cycle) -> bool:
        """Stop observing an instance. Return whether it was the observed one."""
        if self._observed is not cycle:
            return False
        self._observed = None
        self.is_wanted = True
        return True

    def left(self, cycle: Cycle) -> None:
        """Note that an instance has left: a quarantine process looks for the next one."""
        self.end(cycle)
        self.is_wanted = self.is_wanted or self.is_only
