"""Rollback: undo what the steps of an instance did, in reverse order of their start (docs/guarantees.md, 15).

    the handler has ended → what is open is cancelled → the row says that the rollbacks run
        → one after the other, each with attempts of its own → the end

When an instance is claimed during its rollbacks, the functions are lost with the memory of its last worker. So its
handler is replayed over the recorded outcomes only, and nothing new starts: its calls bring the functions. A step that
the handler no longer calls cannot be undone by a program, and its rollback has failed.
"""

from __future__ import annotations

import json

from engine.replay.attempts.attempt import MAX_CRASHES
from engine.replay.attempts.bodies import DoOperation
from engine.replay.calls import phases
from engine.replay.exit.endings import Ending
from engine.replay.exit.exit import Exit
from engine.replay.records import outcomes
from engine.replay.records.history import AttemptRecord, LogLine, StepRecord
from engine.replay.records.writes import Leave, Writes
from engine.replay.rollback.operation import RollbackOperation, refuse
from engine.replay.state import CycleState
from engine.values.error_record import cut
from engine.values.errors import ErrorRecord, RollbackNotFoundError
from engine.values.states import AttemptStatus, InstanceStatus, RollbackState, WaitingFor

TERMINATED = ErrorRecord("Terminated", "The instance was terminated, and its rollbacks were asked for.")


class Rollbacks:
    """The rollbacks of an instance: their order, and how they end."""

    def __init__(self, cycle: CycleState, exit: Exit, ending: Ending) -> None:
        self._cycle = cycle
        self._exit = exit
        self.ending = ending
        self._error = TERMINATED if ending.error is None else ErrorRecord.from_json(json.loads(ending.error))
        self._left = [  # by start: the last one is the next
            record
            for record in cycle.history.steps.values()
            if record.is_to_be_undone and record.is_recorded and record.rollback != RollbackState.COMPLETE
        ]
        self._left.sort(key=lambda record: record.seq)
        self._called = {call.record.seq: call for call in cycle.deliveries.entered.values()}
        self._operation: RollbackOperation | None = None  # under way

    def advance(self) -> None:
        """Do all that can be done now: begin the body of a recorded attempt, or continue with the next rollback."""
        cycle, operation = self._cycle, self._operation
        if operation is not None and operation.phase is phases.STARTED:
            operation.run()
        elif cycle.is_quiescing or cycle.steps.bodies or cycle.steps.asking:
            return
        elif not self._left:
            self._exit.write_rolled_back(self.ending, RollbackState.COMPLETE)
        elif self._left[-1].rollback == RollbackState.FAILED:
            self._exit.write_rolled_back(self.ending, RollbackState.FAILED)
        elif operation is None:
            self._take(self._left[-1])
        else:
            self._go_on(operation)

    def give_up(self, refused: Writes, error: Exception) -> None:
        """End as with a failed rollback: the database refuses what the rollbacks record, or the engine failed.

        Refused attempts are recorded without their outcomes, which may be what was refused.
        """
        cycle = self._cycle
        for attempt in (refused.attempts | cycle.writes.attempts).values():
            attempt.error = None
            if attempt.status == AttemptStatus.RUNNING:
                cycle.finish(attempt, AttemptStatus.CANCELLED)
            cycle.writes.add_attempt(attempt)
        for record in self._left:
            if record.rollback == RollbackState.RUNNING:
                record.rollback = RollbackState.FAILED
                refused.steps[record.seq] = record
        cycle.writes.steps |= refused.steps
        text = f"The rollbacks were given up: {cut(str(error), 1000)}"
        cycle.add_log(LogLine("error", text, None, cycle.host.now_us()))
        self._exit.write_rolled_back(self.ending, RollbackState.FAILED)

    def first_without_function(self) -> StepRecord | None:
        """Return the step at which the rollbacks would fail because the handler does not call it with a rollback."""
        for record in reversed(self._left):
            step = self._step_of(record)
            if step is None or step.options.rollback is None:
                return record
        return None

    # The next one

    def _take(self, record: StepRecord) -> None:
        """Take up the next step, with the attempts that earlier workers have made."""
        cycle, step = self._cycle, self._step_of(record)
        made = cycle.history.undoing.pop(record.seq, [])
        if step is None or step.options.rollback is None:
            self._close_lost(record, made)
            number = max((attempt.number for attempt in made), default=0)
            refuse(cycle, record, number, RollbackNotFoundError(record.name))
            return
        try:
            operation = RollbackOperation(cycle, step, error=self._error, on_complete=self._completed)
        except Exception as error:  # noqa: BLE001 - the types are the user's
            self._exit.pause_with_reason(outcomes.output_refused(record, error))
            return
        self._operation = operation
        self._close_lost(record, made)
        operation.count(made)
        if operation.budget.crashes >= MAX_CRASHES:
            operation.refuse_crashes()
        else:
            self._go_on(operation)

    def _step_of(self, record: StepRecord) -> DoOperation | None:
        """Return the handler's call of a step; the owner of an inner step knows its call."""
        found = self._cycle.undoable.get(record.identity)
        if found is None and record.parent:
            owner = self._called.get(record.parent)
            found = None if owner is None else owner.call_of(record)
        return found if isinstance(found, DoOperation) else None

    def _close_lost(self, record: StepRecord, made: list[AttemptRecord]) -> None:
        """Close the attempt that a dead worker left behind. It spends nothing; in quarantine it counts as a crash."""
        for attempt in made:
            if attempt.status == AttemptStatus.RUNNING:
                self._cycle.finish(attempt, AttemptStatus.LOST)
                self._cycle.failures.lose(attempt, record)
                self._cycle.record(record, attempt)

    def _completed(self) -> None:
        self._left.pop()
        self._operation = None

    def _go_on(self, operation: RollbackOperation) -> None:
        """Make the next attempt when it is due; wait in the database until then."""
        cycle, wake_us = self._cycle, operation.record.wake_us
        cycle.ask_for_wake_ups()
        if cycle.wake_ups.is_asking:
            return
        if wake_us is None or wake_us <= cycle.host.due_us():
            operation.begin()
        elif wake_us <= cycle.claimed.due_us:
            cycle.rest_until(wake_us)
        else:
            self._exit.leave(Leave(InstanceStatus.WAITING, WaitingFor.RETRY, wake_us, signals=cycle.signals))
