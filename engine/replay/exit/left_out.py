"""What began in writes that a pause has left out."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from engine.replay.records.writes import Writes
from engine.replay.state import CycleState
from engine.values.states import AttemptStatus


class LeftOut:
    """Kept while the pause may yet be withdrawn."""

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
        """Take in what a flush has left out of these writes."""
        self._writes.absorb(writes.begun())

    def write(self) -> None:
        """The pause is withdrawn: let it begin after all."""
        cycle, writes = self._cycle, self._take()
        if writes:
            cycle.put_back(writes)
            cycle.host.flush(cycle)

    def forget(self) -> None:
        """Whoever takes the instance next begins it: here it never began.

        But for the losses that it was to follow: those are recorded.
        """
        cycle, writes = self._cycle, self._take()
        for then in writes.then:
            then(True)
        for (seq, _), attempt in writes.attempts.items():
            if attempt.status == AttemptStatus.LOST:
                cycle.wait_for_next(writes.steps[seq])
                cycle.record(writes.steps[seq], attempt)

    def drop(self) -> None:
        """The lease is lost: nothing of it is written."""
        self._take()

    def _take(self) -> Writes:
        taken, self._writes = self._writes, Writes()
        return taken
