"""How much a shift can take on: its slots, its memory, and its threads."""

from __future__ import annotations

from engine.worker.cycle_host import CycleHost
from engine.worker.database.reader import Reader

LIGHT_SECONDS = 0.02  # after so long in async bodies only, an instance takes no slot
LIGHT_FACTOR = 8  # instances that a shift holds at most, in slots
# With no thread free, a shift leaves what is due to others for so long: it may need a thread. What wakes up, for longer
# than they hang back, but not so long that it is late where no shift has one; what is new, as long as a busy one takes.
SATURATED_SECONDS = 0.02
SATURATED_NEW_SECONDS = 0.3


class Capacity:
    """The room of a shift for more instances."""

    def __init__(self, host: CycleHost, reader: Reader, slots: int) -> None:
        self._host = host
        self._reader = reader
        self._slots = slots

    def free_slots(self, *, has_backlog: bool) -> int:
        """Count the slots: an instance that only awaits async bodies costs memory, no time, and takes none."""
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
        """Decide how long what is due is left to others, which have a thread for it."""
        is_saturated = self.is_saturated
        self._reader.late_seconds = SATURATED_SECONDS if is_saturated else 0.0
        self._reader.late_new_seconds = SATURATED_NEW_SECONDS if is_saturated else 0.0

    @property
    def is_saturated(self) -> bool:
        """Tell whether a sync body that began now would have to wait for a thread."""
        return self._host.bodies.is_saturated
