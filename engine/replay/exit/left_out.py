"""Writes that a pause left out, with what they would have begun."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from engine.replay.records.writes import Writes
from engine.replay.state import CycleState
from engine.values.states import AttemptStatus


class LeftOut:
    """Keeps them while the pause may still be withdrawn."""

    def __init__(self, cycle: CycleState) -> None:
        self._cycle = cycle
        self._writes = Writes()

    def __bool__(self) -> bool:
        return bool(self._writes)

    @property
    def starts(self) -> AbstractSet[int]:
        """The steps that would have begun."""
        return self._writes.starts

    def keep(self, writes: Writes) -> None:
        """Keep what a flush left out of these writes."""
        self._writes.absorb(writes.begun())

    def write(self) -> None:
        """Write them after all: the pause is withdrawn."""
        cycle, writes = self._cycle, self._take()
        if writes:
            cycle.put_back(writes)
            cycle.host.flush(cycle)

    def forget(self) -> None:
        """Undo what would have begun here: the next worker begins it.

        Attempts that were lost before are recorded.
        """
        cycle, writes = self._cycle, self._take()
        for then in writes.then:
            then(True)
        for (seq, _), attempt in writes.attempts.items():
            if attempt.status == AttemptStatus.LOST:
                cycle.wait_for_next(writes.steps[seq])
                cycle.record(writes.steps[seq], attempt)

    def drop(self) -> None:
        """Drop them: the lease is lost."""
        self._take()

    def _take(self) -> Writes:
        taken, self._writes = self._writes, Writes()
        return taken
