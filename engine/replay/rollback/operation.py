"""The rollback of one step, with attempts of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from engine.declare.context import RollbackContext
from engine.replay.attempts.attempt import AttemptedOperation, RollbackBudget
from engine.replay.attempts.bodies import DoOperation
from engine.replay.calls import phases
from engine.replay.calls.call import Path
from engine.replay.host import Phase
from engine.replay.records import outcomes
from engine.replay.records.history import SPENT, AttemptRecord, StepRecord
from engine.replay.state import CycleState
from engine.values.errors import ErrorRecord, WorkerLostError
from engine.values.retry import RETRIED_AFTER, StepOptions
from engine.values.serialization import Stored
from engine.values.states import AttemptPhase, AttemptStatus, RollbackState, StepStatus

NOTHING = Stored("null", None)


class RollbackOperation(AttemptedOperation):
    """The function that undoes a step, the options in force for it, and what it has spent."""

    attempt_phase = AttemptPhase.ROLLBACK

    def __init__(
        self,
        cycle: CycleState,
        step: DoOperation,
        *,
        error: ErrorRecord,
        on_complete: Callable[[], None],
    ) -> None:
        fn: Any = step.options.rollback
        options = _options(step.record, step)
        super().__init__(cycle, step.record, fn, step.args, step.kwargs, options, step.codec)
        self.budget = RollbackBudget()
        self._on_complete = on_complete
        self._step = step
        is_complete = step.record.status == StepStatus.COMPLETE
        self.output = step.decode(step.record.output or "null") if is_complete else None
        self.error = error

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

    def begin(self) -> None:
        """Make the next attempt, or ask again how long to wait for it."""
        if self.record.wake_us is None:
            self._go_on()
        else:
            self.start()

    def start(self) -> None:
        """Record an attempt; its body runs once that is committed, unless a pause is requested by then."""
        self.record.rollback = RollbackState.RUNNING
        attempt = self._begin_attempt()
        self.cycle.writes.then.append(lambda _: self._started(attempt))
        self.cycle.record(self.record, attempt)

    def _started(self, attempt: AttemptRecord) -> None:
        if self.attempt is attempt:
            self.cycle.steps.enter(self, phases.STARTED)
            self.cycle.host.poke(self.cycle)  # not at once: the answer may announce a pause

    def run(self) -> None:
        """Begin the body of the attempt that is recorded."""
        attempt = self.attempt
        assert attempt is not None
        if self.cycle.phase is Phase.ROLLING_BACK:
            self._run(attempt)
        else:  # a pause came with the answer: the recorded attempt does not begin
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
        self._on_complete()
        self.cycle.record(self.record, attempt)

    def _give_up(self, attempt: AttemptRecord) -> None:
        self.cycle.failures.give_up(attempt)
        self.record.rollback = RollbackState.FAILED
        self.record.wake_us = None
        self.cycle.record(self.record)

    def _refuse(self, error: BaseException) -> None:
        refuse(self.cycle, self.record, self.budget.attempts, error)

    def refuse_crashes(self) -> None:
        """Fail for good: it has crashed its worker too often."""
        self._refuse(WorkerLostError(self.label, self.budget.crashes))

    def _wait_until(self, when_us: int) -> None:
        self.record.wake_us = when_us
        self.cycle.record(self.record)
        self.cycle.host.poke(self.cycle)


def refuse(cycle: CycleState, record: StepRecord, number: int, error: BaseException) -> None:
    """Fail for good without calling the function; an attempt that did not begin records the reason."""
    attempt = AttemptRecord(
        record.seq,
        number + 1,
        cycle.host.name,
        cycle.host.now_us(),
        quarantined=cycle.quarantined and cycle.host.holds_only(cycle),
        phase=AttemptPhase.ROLLBACK,
    )
    cycle.finish(attempt, AttemptStatus.ERRORED)
    kept = ErrorRecord.of(error)
    attempt.error = outcomes.kept_json(kept, step=record.name, attempts=number)
    cycle.failures.fail(attempt, record, kept, error)
    cycle.failures.give_up(attempt)
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
