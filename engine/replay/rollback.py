"""Rollback: what the steps of an instance did is undone, in reverse order of their start (CONTRACT.md, guarantee 15).

    the handler has ended → what is open is cancelled → the row says that the rollbacks run
        → one after the other, each with attempts of its own → the end

An instance that is claimed amid its rollbacks has lost the functions with the memory of its worker. So its handler is
replayed over the recorded outcomes only, and nothing new starts: what it calls on the way are the functions. One that
it does not call any more cannot be undone by a program, and that rollback has failed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from engine.error_record import cut
from engine.errors import ErrorRecord, RollbackNotFoundError, StepTimeoutError, WorkerLostError
from engine.replay import attempts, leaving, outcomes, raised
from engine.replay.context import RollbackContext
from engine.replay.history import AttemptRecord, LogLine, StepRecord
from engine.replay.host import Phase
from engine.replay.operation import DoOperation, Operation, Path
from engine.replay.outcomes import Ending
from engine.replay.writes import Leave, Writes
from engine.retry import RETRIED_AFTER, StepOptions, backoff_delay, default_delay, is_retryable
from engine.serialization import Stored
from engine.states import AttemptPhase, AttemptStatus, InstanceStatus, RollbackState, StepStatus, WaitingFor

if TYPE_CHECKING:
    from engine.replay.cycle import Cycle

_rng = Random()  # noqa: S311 - jitter, no secret
NOTHING = Stored("null", None)
TERMINATED = ErrorRecord("Terminated", "The instance was terminated, and its rollbacks were asked for.")


@dataclass(slots=True)
class Undoing:
    """How far the rollbacks of an instance are."""

    ending: Ending
    left: list[StepRecord]  # by start: the last one is the next
    called: dict[int, Operation]  # by the handler, by step
    operation: RollbackOperation | None = None  # under way


class RollbackOperation(DoOperation):
    """The rollback of one step: the function, the options in force for it, and what it has spent."""

    def __init__(self, step: DoOperation, options: StepOptions, ending: Ending) -> None:
        super().__init__(
            step.cycle, step.record, _function(step), step.args, step.kwargs, options, step.codec
        )
        self.step = step
        is_complete = step.record.status == StepStatus.COMPLETE
        self.output = step.decode(step.record.output or "null") if is_complete else None
        self.error = TERMINATED if ending.error is None else ErrorRecord.from_json(json.loads(ending.error))
        self.number = self.spent = self.convicted = 0
        self.unbegun: AttemptRecord | None = None  # recorded, and its body not begun yet
        self.unasked: AttemptRecord | None = None  # the last one, whose delay function has not answered yet

    @property
    def path(self) -> Path:
        return self.step.path

    @property
    def label(self) -> str:
        return self.step.label

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

    def settle(
        self, attempt: AttemptRecord, *, stored: Stored | None = None, error: BaseException | None = None
    ) -> None:
        settle(self.cycle, self, attempt, error)

    def take_in(self, attempt: AttemptRecord, stored: Stored, finished_us: int) -> None:
        take_in(self.cycle, self, attempt, finished_us)

    def back_off(self, attempt: AttemptRecord, *, delay: timedelta | None = None) -> None:
        back_off(self.cycle, self, attempt, delay)

    def give_up(self, attempt: AttemptRecord, error: BaseException | None = None) -> None:
        end_attempts(self.cycle, self, error)


# Beginning


def is_due(cycle: Cycle, ending: Ending) -> bool:
    """Tell whether an instance that ends so has anything to undo."""
    if ending.rolls_back:
        return True
    return ending.status == InstanceStatus.ERRORED and any(
        record.is_to_be_undone and (record.is_recorded or record.seq in cycle.writes.steps)
        for record in cycle.history.steps.values()
    )


def call(cycle: Cycle, ending: Ending) -> None:
    """Record that the rollbacks begin, with all that led to them; the answer to that calls `begin`."""
    cycle.ending = ending
    leaving.leave(
        cycle,
        Leave(
            InstanceStatus.RUNNING,
            error=ending.error,
            rollback=RollbackState.RUNNING,
            ends_as=ending.status,
        ),
    )


def begin(cycle: Cycle, ending: Ending) -> None:
    """Undo, from the step that started last on."""
    left = [
        record
        for record in cycle.history.steps.values()
        if record.is_to_be_undone and record.is_recorded and record.rollback != RollbackState.COMPLETE
    ]
    left.sort(key=lambda record: record.seq)
    called = {operation.record.seq: operation for operation in cycle.deliveries.entered.values()}
    cycle.undoing = Undoing(ending, left, called)
    cycle.delaying.clear()  # whatever still asked was about a step
    cycle.phase = Phase.ROLLING_BACK
    cycle.host.poke(cycle)


def advance(cycle: Cycle, undoing: Undoing) -> None:
    """Do all that can be done now: begin the body of an attempt that is recorded, or go on to the next."""
    operation = undoing.operation
    if operation is not None and operation.unbegun is not None:
        _begin_body(cycle, operation, operation.unbegun)
    elif cycle.phase is Phase.FREEZING or cycle.bodies or cycle.delaying:
        return
    elif not undoing.left:
        _end(cycle, undoing, RollbackState.COMPLETE)
    elif undoing.left[-1].rollback == RollbackState.FAILED:
        _end(cycle, undoing, RollbackState.FAILED)
    elif operation is None:
        _take(cycle, undoing, undoing.left[-1])
    else:
        _go_on(cycle, operation)


def _end(cycle: Cycle, undoing: Undoing, state: RollbackState) -> None:
    ending = undoing.ending
    leaving.leave(
        cycle,
        Leave(
            ending.status,
            error=ending.error,
            unreached=leaving.unreached(cycle),
            rollback=state,
            ends_as=ending.status,
        ),
    )


# Finding what to call


def _take(cycle: Cycle, undoing: Undoing, record: StepRecord) -> None:
    """Take up the next step, with the attempts that earlier workers have made."""
    step = _step_of(cycle, undoing, record)
    made = cycle.history.undoing.pop(record.seq, [])
    if step is None or _function(step) is None:
        _close_lost(cycle, record, made)
        number = max((attempt.number for attempt in made), default=0)
        _refuse(cycle, record, number, RollbackNotFoundError(record.name))
        return
    try:
        operation = RollbackOperation(step, _options(record, step), undoing.ending)
    except Exception as error:  # noqa: BLE001 - the types are the user's
        leaving.stick(cycle, outcomes.output_refused(record, error))
        return
    undoing.operation = operation
    _close_lost(cycle, record, made)
    _count(operation, made)
    if operation.convicted >= attempts.MAX_CONVICTIONS:
        _refuse(cycle, record, operation.number, WorkerLostError(operation.label, operation.convicted))
    else:
        _go_on(cycle, operation)


def _step_of(cycle: Cycle, undoing: Undoing, record: StepRecord) -> DoOperation | None:
    """Return the call of a step that the handler has made; that of an inner step is known to what it belongs to."""
    found = cycle.undoable.get(record.identity)
    if found is None and record.parent:
        owner = undoing.called.get(record.parent)
        found = None if owner is None else owner.call_of(record)
    return found


def _function(step: DoOperation) -> Any:
    return step.options.rollback


def _options(record: StepRecord, step: DoOperation) -> StepOptions:
    """Return the options that were recorded when the step first started, with the functions of the present code."""
    present = step.options.rollback_options
    return StepOptions.from_json(_recorded(record), delay=None if present is None else present.delay)


def _recorded(record: StepRecord) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(record.options or "{}").get("rollback", {})
    return found


def _close_lost(cycle: Cycle, record: StepRecord, made: list[AttemptRecord]) -> None:
    """Close the attempt that a dead worker left behind. It spends nothing, and convicts the rollback only if alone."""
    for attempt in made:
        if attempt.status == AttemptStatus.RUNNING:
            attempts.finish(cycle, attempt, AttemptStatus.LOST)
            cycle.record(record, attempt)


def _count(operation: RollbackOperation, made: list[AttemptRecord]) -> None:
    before = _recorded(operation.record).get(RETRIED_AFTER, 0)
    for attempt in made:
        operation.number = max(operation.number, attempt.number)
        if attempt.number > before:
            is_spent = attempt.status in (AttemptStatus.ERRORED, AttemptStatus.TIMED_OUT)
            operation.spent += is_spent
            operation.convicted += attempt.status == AttemptStatus.LOST and attempt.alone
            operation.unasked = attempt if is_spent else None


# Attempts


def _go_on(cycle: Cycle, operation: RollbackOperation) -> None:
    """Make the next attempt, when its time has come; until then wait in the database."""
    wake_us = operation.record.wake_us
    if wake_us is None and operation.unasked is not None:
        _ask_again(cycle, operation, operation.unasked)
    elif wake_us is None or wake_us <= cycle.host.due_us():
        _start(cycle, operation)
    elif wake_us <= cycle.claimed.due_us:
        cycle.is_resting = True
        cycle.host.call_at(cycle, wake_us)
    else:
        leaving.leave(cycle, Leave(InstanceStatus.WAITING, WaitingFor.RETRY, wake_us, signals=cycle.signals))


def _start(cycle: Cycle, operation: RollbackOperation) -> None:
    """Record an attempt; its body runs once that is committed, unless somebody wants a pause by then."""
    record = operation.record
    operation.number += 1
    operation.unasked = None
    record.rollback = RollbackState.RUNNING
    record.wake_us = None
    attempt = _attempt(cycle, record, operation.number)
    cycle.has_lone_body = attempt.alone
    cycle.bodies[record.seq] = attempt
    cycle.writes.then.append(lambda _: _recorded_start(cycle, operation, attempt))
    cycle.record(record, attempt)


def _attempt(cycle: Cycle, record: StepRecord, number: int) -> AttemptRecord:
    return AttemptRecord(
        record.seq,
        number,
        cycle.host.name,
        cycle.host.now_us(),
        alone=cycle.isolated and cycle.host.holds_only(cycle),
        phase=AttemptPhase.ROLLBACK,
    )


def _recorded_start(cycle: Cycle, operation: RollbackOperation, attempt: AttemptRecord) -> None:
    if cycle.bodies.get(attempt.step_seq) is attempt:
        operation.unbegun = attempt
        cycle.host.poke(cycle)  # and not at once: the answer may tell of a pause


def _begin_body(cycle: Cycle, operation: RollbackOperation, attempt: AttemptRecord) -> None:
    operation.unbegun = None
    if cycle.bodies.get(attempt.step_seq) is not attempt:
        return
    if cycle.phase is Phase.ROLLING_BACK:
        cycle.host.run_body(cycle, operation, attempt)
    else:  # a pause came with the answer: the attempt is recorded, and was none
        attempts.cancel(cycle, attempt.step_seq, attempt)
        cycle.record(operation.record, attempt)


def settle(
    cycle: Cycle, operation: RollbackOperation, attempt: AttemptRecord, error: BaseException | None
) -> None:
    """Take in how a rollback's body ended. A late end, of an attempt that is over, is refused here."""
    record, undoing = operation.record, cycle.undoing
    if undoing is None or cycle.bodies.get(record.seq) is not attempt:
        return
    attempts.forget_body(cycle, attempt)
    if error is None:
        attempts.finish(cycle, attempt, AttemptStatus.COMPLETE)
        _complete(record, undoing)
    else:
        _fail(cycle, operation, attempt, error)
    cycle.record(record, attempt)
    cycle.host.poke(cycle)


def take_in(cycle: Cycle, operation: RollbackOperation, attempt: AttemptRecord, finished_us: int) -> None:
    """Take in that an atomic rollback has recorded its success itself."""
    record, undoing = operation.record, cycle.undoing
    if undoing is None or cycle.bodies.get(record.seq) is not attempt:
        return
    attempts.forget_body(cycle, attempt)
    attempt.status, attempt.finished_us = AttemptStatus.COMPLETE, finished_us
    _complete(record, undoing)
    cycle.record(record, attempt)  # again, as it stands
    cycle.host.poke(cycle)


def _complete(record: StepRecord, undoing: Undoing) -> None:
    record.rollback = RollbackState.COMPLETE
    undoing.left.pop()
    undoing.operation = None


def _fail(cycle: Cycle, operation: RollbackOperation, attempt: AttemptRecord, error: BaseException) -> None:
    record, options = operation.record, operation.options
    timed_out = isinstance(error, StepTimeoutError)
    attempts.finish(cycle, attempt, AttemptStatus.TIMED_OUT if timed_out else AttemptStatus.ERRORED)
    attempt.error = outcomes.error_json(error, step=operation.label, attempts=attempt.number)
    operation.spent += 1
    if not is_retryable(error) or operation.spent >= options.max_attempts:
        record.rollback = RollbackState.FAILED
    elif callable(options.delay):
        attempt.error = raised.with_class(attempt.error, error)
        record.wake_us = None  # it has not answered yet, and that is recorded so
        operation.unasked = attempt
        _ask(cycle, operation, attempt, error)
    else:
        _wait(operation, attempt, backoff_delay(options, operation.spent, rng=_rng))


def _ask(cycle: Cycle, operation: RollbackOperation, attempt: AttemptRecord, error: BaseException) -> None:
    """Ask the delay function, once it is recorded that it has not answered."""
    cycle.delaying.add(operation.record.seq)
    cycle.writes.committed.append(lambda: _ask_now(cycle, operation, attempt, error))
    cycle.record(operation.record)


def _ask_now(
    cycle: Cycle, operation: RollbackOperation, attempt: AttemptRecord, error: BaseException
) -> None:
    if operation.record.seq in cycle.delaying:
        cycle.host.ask_delay(cycle, operation, attempt, error)


def _ask_again(cycle: Cycle, operation: RollbackOperation, attempt: AttemptRecord) -> None:
    """Go on where the delay function had not answered: an earlier worker died, or left."""
    options = operation.options
    if not callable(options.delay):  # the code has changed
        _wait(operation, attempt, backoff_delay(options, operation.spent, rng=_rng))
        cycle.record(operation.record)
        cycle.host.poke(cycle)
        return
    error = raised.again(attempt.error, operation.label)
    if cycle.isolated:  # its worker may have died of the function: the next one shall not
        _wait(operation, attempt, default_delay(options, operation.spent, rng=_rng))
    _ask(cycle, operation, attempt, error)


def _wait(operation: RollbackOperation, attempt: AttemptRecord, delay: timedelta) -> None:
    operation.unasked = None
    operation.record.wake_us = attempts.after(attempt, delay)


def back_off(
    cycle: Cycle, operation: RollbackOperation, attempt: AttemptRecord, delay: timedelta | None
) -> None:
    """Take in what the delay function said: its answer as it is, or the default where there is none."""
    record = operation.record
    if record.seq in cycle.delaying:
        cycle.delaying.discard(record.seq)
        if delay is None:
            delay = default_delay(operation.options, operation.spent, rng=_rng)
        _wait(operation, attempt, delay)
        cycle.record(record)
        cycle.host.poke(cycle)


def end_attempts(cycle: Cycle, operation: RollbackOperation, error: BaseException | None) -> None:
    """Take in that the delay function wants no further attempt, or has failed: then with that error."""
    record = operation.record
    if record.seq not in cycle.delaying:
        return
    cycle.delaying.discard(record.seq)
    if error is not None:
        _refuse(cycle, record, operation.number, error)
    else:
        record.rollback = RollbackState.FAILED
        record.wake_us = None
        cycle.record(record)
        cycle.host.poke(cycle)


def _refuse(cycle: Cycle, record: StepRecord, number: int, error: BaseException) -> None:
    """Fail for good without calling the function: an attempt that did not begin says why."""
    attempt = _attempt(cycle, record, number + 1)
    attempts.finish(cycle, attempt, AttemptStatus.ERRORED)
    attempt.error = outcomes.error_json(error, step=record.name, attempts=number)
    record.rollback = RollbackState.FAILED
    record.wake_us = None
    cycle.record(record, attempt)
    cycle.host.poke(cycle)


def give_up(cycle: Cycle, undoing: Undoing, refused: Writes, error: Exception) -> None:
    """The database refuses what the rollbacks record, or the engine failed: end as with a failed rollback.

    Of what was refused it is kept that it was done: what it said may be what is refused.
    """
    for attempt in (refused.attempts | cycle.writes.attempts).values():
        attempt.error = None
        if attempt.status == AttemptStatus.RUNNING:
            attempts.finish(cycle, attempt, AttemptStatus.CANCELLED)
        cycle.writes.attempts[attempt.step_seq, attempt.number] = attempt
    for record in undoing.left:
        if record.rollback == RollbackState.RUNNING:
            record.rollback = RollbackState.FAILED
            refused.steps[record.seq] = record
    cycle.writes.steps |= refused.steps
    text, fields, at_us = f"The rollbacks were given up: {cut(str(error), 1000)}", None, cycle.host.now_us()
    cycle.add_log(LogLine("error", text, fields, at_us))
    _end(cycle, undoing, RollbackState.FAILED)
