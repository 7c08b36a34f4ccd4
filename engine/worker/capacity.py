"""How many instances a shift can claim: its slots, memory and threads."""

from __future__ import annotations

from engine.worker.cycle_host import CycleHost
from engine.worker.database.reader import Reader

LIGHT_SECONDS = 0.02  # in async bodies only, after which an instance takes no slot
LIGHT_FACTOR = 8  # a shift holds at most this many instances per slot
# A shift without a free thread leaves due instances to others for this long, because they may need a thread. Woken ones
# for longer than others hang back, but not so long that they are late if no shift has a thread; new ones for as long as
# a busy shift takes.
SATURATED_SECONDS = 0.02
SATURATED_NEW_SECONDS = 0.3


class Capacity:
    """Decides how many more instances a shift can hold, and what it leaves to other shifts."""

    def __init__(self, host: CycleHost, reader: Reader, slots: int) -> None:
        self._host = host
        self._reader = reader
        self._slots = slots

    def free_slots(self, *, has_backlog: bool) -> int:
        """Count the free slots. An instance that only awaits async bodies takes memory, but no time, and so no slot."""
        if self._reader.memory.is_full:
            return 0
        held = len(self._host.cycles)
        if held < self._slots or not has_backlog:
            return self._slots - held
        busy = sum(
            not self._host.bodies.only_awaits(cycle, LIGHT_SECONDS) for cycle in self._host.cycles.values()
        )
        return min(self._slots - busy, self._slots * LIGHT_FACTOR - held)

    def leave_to_others(self) -> None:
        """Decide how long due instances are left to other shifts, which may have a free thread."""
        is_saturated = self.is_saturated
        self._reader.late_seconds = SATURATED_SECONDS if is_saturated else 0.0
        self._reader.late_new_seconds = SATURATED_NEW_SECONDS if is_saturated else 0.0

    @property
    def is_saturated(self) -> bool:
        """Return whether a sync body that starts now would have to wait for a thread."""
        return self._host.bodies.is_saturated
