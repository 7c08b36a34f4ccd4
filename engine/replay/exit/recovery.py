"""What becomes of an instance after the database refused its writes, or the engine failed."""

from __future__ import annotations

from engine.replay.exit import endings
from engine.replay.exit.exit import Exit
from engine.replay.host import Phase
from engine.replay.records.writes import Writes
from engine.replay.state import CycleState
from engine.values.records import AttemptRecord
from engine.values.states import AttemptStatus


class Recovery:
    """Ends the instance with the error; if that is refused as well, leaves it paused."""

    def __init__(self, cycle: CycleState, exit: Exit) -> None:
        self._cycle = cycle
        self._exit = exit
        self._has_begun = False

    def begin(self, error: Exception) -> Writes | None:
        """Stop after a refusal and return what was refused; None if nothing can be written any more."""
        cycle = self._cycle
        if cycle.phase is Phase.LEFT:
            return None  # the refusal came late: it does not concern the next cycle of the instance
        refused = cycle.take_writes()
        if self._has_begun:
            cycle.host.give_up(cycle, endings.given_up(error))
            self._exit.abandon()
            return None
        self._has_begun = True
        self._exit.stop()
        for call in list(
            cycle.steps.bodies.values()
        ):  # if one is committed after all, that is refused as well
            cycle.cancel_attempt(call)
        return refused

    def end(self, refused: Writes, error: Exception) -> None:
        """Cancel what is open and what was refused, and end with the error."""
        cycle = self._cycle
        refused.attempts |= cycle.take_writes().attempts
        for record in cycle.history.steps.values():
            if (
                record.is_recorded
                and not record.stands
                and (not record.is_final or record.seq in refused.steps)
            ):
                cycle.close_lost(record)
                record.delivery = record.output = record.error = None
                cycle.cancel_record(record)
        cycle.writes.attempts |= self._without_outcomes(refused)
        self._exit.close(self._exit.decision.after_rollbacks or endings.of_error(error))

    def _without_outcomes(self, refused: Writes) -> dict[tuple[int, int], AttemptRecord]:
        """Return the attempts of recorded steps without their outcomes, which may be what was refused."""
        recorded = {record.seq for record in self._cycle.history.steps.values() if record.is_recorded}
        kept = {where: attempt for where, attempt in refused.attempts.items() if where[0] in recorded}
        for attempt in kept.values():
            attempt.error = None
            if attempt.status in (AttemptStatus.RUNNING, AttemptStatus.COMPLETE):
                self._cycle.finish(attempt, AttemptStatus.CANCELLED)
        return kept
