"""Rollback: what the steps of an instance did is undone, in reverse order of their start (docs/guarantees.md, 15).

    the handler has ended → what is open is cancelled → the row says that the rollbacks run
        → one after the other, each with attempts of its own → the end

An instance that is claimed amid its rollbacks has lost the functions with the memory of its worker. So its handler is
replayed over the recorded outcomes only, and nothing new starts: what it calls on the way are the functions. One that
it does not call any more cannot be undone by a program, and that rollback has failed.
"""

from __future__ import annotations

import json
from typing import Any

from engine.declare.context import RollbackContext
from engine.replay import outcomes, phases
from engine.replay.attempts import MAX_CRASHES, AttemptedOperation, RollbackBudget
from engine.replay.bodies import DoOperation
from engine.replay.call import Path
from engine.replay.exit import Exit
from engine.replay.history import SPENT, AttemptRecord, LogLine, StepRecord
from engine.replay.host import Phase
from engine.replay.outcomes import Ending
from engine.replay.state import CycleState
from engine.replay.writes import Leave, Writes
from engine.values.error_record import cut
from engine.values.errors import ErrorRecord, RollbackNotFoundError, WorkerLostError
from engine.values.retry import RETRIED_AFTER, StepOptions
from engine.values.serialization import Stored
from engine.values.states import (
    AttemptPhase,
    AttemptStatus,
    InstanceStatus,
    RollbackState,
    StepStatus,
    WaitingFor,
)

NOTHING = Stored("null", None)
TERMINATED = ErrorRecord("Terminated", "The instance was terminated, and its rollbacks were asked for.")


class Rollbacks:
    """The rollbacks of an instance: their order, and how they end."""

    def __init__(self, cycle: CycleState, exit: Exit, ending: Ending) -> None:
        self._cycle = cycle
        self._exit = exit
        self.ending = ending
        self._left = [  # by start: the last one is the next
            record
            for record in cycle.history.steps.values()
            if record.is_to_be_undone and record.is_recorded and record.rollback != RollbackState.COMPLETE
        ]
        self._left.sort(key=lambda record: record.seq)
        self._called = {call.record.seq: call for call in cycle.deliveries.entered.values()}
        self._operation: RollbackOperation | None = None  # under way

    def advance(self) -> None:
        """Do all that can be done now: begin the body of an attempt that is recorded, or go on to the next."""
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

    def completed(self) -> None:
        """The rollback that was under way has succeeded."""
        self._left.pop()
        self._operation = None

    def give_up(self, refused: Writes, error: Exception) -> None:
        """The database refuses what the rollbacks record, or the engine failed: end as with a failed rollback.

        Of what was refused it is kept that it was done: what it said may be what is refused.
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
            operation = RollbackOperation(self, cycle, step, _options(record, step))
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
        """Return the call of a step that the handler has made; that of an inner step is known to what it belongs to."""
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
                self._cycle.record(record, attempt)

    def _go_on(self, operation: RollbackOperation) -> None:
        """Make the next attempt, when its time has come; until then wait in the database."""
        cycle, wake_us = self._cycle, operation.record.wake_us
        if wake_us is None or wake_us <= cycle.host.due_us():
            operation.go_on()
        elif wake_us <= cycle.claimed.due_us:
            cycle.rest_until(wake_us)
        else:
            self._exit.leave(Leave(InstanceStatus.WAITING, WaitingFor.RETRY, wake_us, signals=cycle.signals))


class RollbackOperation(AttemptedOperation):
    """The rollback of one step: the function, the options in force for it, and what it has spent."""

    attempt_phase = AttemptPhase.ROLLBACK

    def __init__(
        self, rollbacks: Rollbacks, cycle: CycleState, step: DoOperation, options: StepOptions
    ) -> None:
        fn: Any = step.options.rollback
        super().__init__(cycle, step.record, fn, step.args, step.kwargs, options, step.codec)
        self.budget = RollbackBudget()
        self._rollbacks = rollbacks
        self._step = step
        is_complete = step.record.status == StepStatus.COMPLETE
        self.output = step.decode(step.record.output or "null") if is_complete else None
        error = rollbacks.ending.error
        self.error = TERMINATED if error is None else ErrorRecord.from_json(json.loads(error))

    @property
    def path(self) -> Path:
        return self._step.path

    @property
    def label(self) -> str:
        return self._step.label

    def context(self, **facts: Any) -> RollbackContext:
        own = facts["options"].copy()
        return RollbackContext(
            **{**facts, "options": own},
            output=self.output,
            error=self.error,
            args=self.args,
            kwargs=self.kwargs,
        )

    def store(self, value: object) -> Stored:
        """Drop what the function returned."""
        return NOTHING

    def count(self, made: list[AttemptRecord]) -> None:
        """Count what earlier workers have spent."""
        budget, unasked = self.budget, self.cycle.history.unasked
        before = _recorded(self.record).get(RETRIED_AFTER, 0)
        unasked.pop(self.record.seq, None)
        for attempt in made:
            budget.attempts = max(budget.attempts, attempt.number)
            if attempt.number > before:
                is_spent = attempt.status in SPENT
                budget.spent += is_spent
                budget.crashes += attempt.status == AttemptStatus.LOST and attempt.quarantined
                unasked.pop(self.record.seq, None)
                if is_spent:
                    unasked[self.record.seq] = attempt

    # Starting

    def go_on(self) -> None:
        """Make the next attempt, or ask once more how long to wait for it."""
        if self.record.wake_us is None:
            self._go_on()
        else:
            self.start()

    def start(self) -> None:
        """Record an attempt; its body runs once that is committed, unless somebody wants a pause by then."""
        self.record.rollback = RollbackState.RUNNING
        attempt = self._begin_attempt()
        self.cycle.writes.then.append(lambda _: self._started(attempt))
        self.cycle.record(self.record, attempt)

    def _started(self, attempt: AttemptRecord) -> None:
        if self.attempt is attempt:
            self.cycle.steps.enter(self, phases.STARTED)
            self.cycle.host.poke(self.cycle)  # and not at once: the answer may tell of a pause

    def run(self) -> None:
        """Begin the body of the attempt that is recorded."""
        attempt = self.attempt
        assert attempt is not None
        if self.cycle.phase is Phase.ROLLING_BACK:
            self._run(attempt)
        else:  # a pause came with the answer: the attempt is recorded, and was none
            self.cycle.cancel_attempt(self)
            self.cycle.record(self.record, attempt)

    # Ending

    def _succeed(self, attempt: AttemptRecord, stored: Stored | None) -> None:
        self._complete(attempt)

    def _take_in(self, attempt: AttemptRecord, stored: Stored, finished_us: int) -> None:
        self._complete(attempt)  # written again, as it stands

    def _complete(self, attempt: AttemptRecord) -> None:
        self.cycle.steps.enter(self, phases.CLOSED)
        self.record.rollback = RollbackState.COMPLETE
        self._rollbacks.completed()
        self.cycle.record(self.record, attempt)

    def _give_up(self, error: str | None) -> None:
        self.record.rollback = RollbackState.FAILED
        self.record.wake_us = None
        self.cycle.record(self.record)

    def _refuse(self, error: BaseException) -> None:
        refuse(self.cycle, self.record, self.budget.attempts, error)

    def refuse_crashes(self) -> None:
        """It has killed its worker too often."""
        self._refuse(WorkerLostError(self.label, self.budget.crashes))

    def _wait_until(self, when_us: int) -> None:
        self.record.wake_us = when_us
        self.cycle.record(self.record)
        self.cycle.host.poke(self.cycle)


def refuse(cycle: CycleState, record: StepRecord, number: int, error: BaseException) -> None:
    """Fail for good without calling the function: an attempt that did not begin says why."""
    attempt = AttemptRecord(
        record.seq,
        number + 1,
        cycle.host.name,
        cycle.host.now_us(),
        quarantined=cycle.quarantined and cycle.host.holds_only(cycle),
        phase=AttemptPhase.ROLLBACK,
    )
    cycle.finish(attempt, AttemptStatus.ERRORED)
    attempt.error = outcomes.error_json(error, step=record.name, attempts=number)
    record.rollback = RollbackState.FAILED
    record.wake_us = None
    cycle.record(record, attempt)
    cycle.host.poke(cycle)


def _options(record: StepRecord, step: DoOperation) -> StepOptions:
    """Return the options that were recorded when the step first started, with the functions of the present code."""
    present = step.options.rollback_options
    return StepOptions.from_json(_recorded(record), delay=None if present is None else present.delay)


def _recorded(record: StepRecord) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(record.options or "{}").get("rollback", {})
    return found
