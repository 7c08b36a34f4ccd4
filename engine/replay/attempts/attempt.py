"""Attempts at the bodies of steps and at their rollbacks: record one, run it, settle it, back off, give up.

An attempt runs once its start is committed. If it fails, another follows after the step's delay, until the budget is
spent. If the delay is a function, it is asked after it is recorded that it has not answered.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any, ClassVar, Protocol

from engine.declare.context import StepContext
from engine.replay.attempts import raised
from engine.replay.calls import phases
from engine.replay.calls.call import Owner
from engine.replay.operations.operation import Operation
from engine.replay.records import failures
from engine.replay.records.history import AttemptRecord, StepRecord
from engine.replay.records.sensitive import output_masked
from engine.replay.state import CycleState
from engine.values.errors import ErrorRecord, InvalidValueError, StepTimeoutError
from engine.values.retry import StepOptions, backoff_delay, default_delay, is_retryable
from engine.values.serialization import Codec, Stored
from engine.values.states import AttemptPhase, AttemptStatus, WaitingFor

MAX_CRASHES = 3  # losses of a step in quarantine
MICROSECOND = timedelta(microseconds=1)
_rng = Random()  # noqa: S311 - jitter, no secret


class Budget(Protocol):
    """What has been spent. The budget of a step is its record."""

    attempts: int  # made so far
    spent: int  # of them, those that count towards max_attempts
    crashes: int  # losses while it was in quarantine


@dataclass(slots=True)
class RollbackBudget:
    """What the rollback of a step has spent since a person last retried it."""

    attempts: int = 0
    spent: int = 0
    crashes: int = 0


class AttemptedOperation(Operation):
    """A function that is called until it succeeds or its budget is spent."""

    waiting_for = WaitingFor.RETRY
    attempt_phase: ClassVar[AttemptPhase]
    context: Callable[..., StepContext] = StepContext

    def __init__(
        self,
        cycle: CycleState,
        record: StepRecord,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: StepOptions,
        codec: Codec,
        *,
        owner: Owner | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(cycle, record, codec.decode, owner=owner, loop=loop)
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.options = options
        self.codec = codec
        self.budget: Budget = record
        if options.rollback is not None:
            cycle.undoable.setdefault(record.identity, self)

    # What a body's and a rollback's attempts do differently

    @abstractmethod
    def _succeed(self, attempt: AttemptRecord, stored: Stored | None) -> None:
        """Record the success of an attempt."""

    @abstractmethod
    def _take_in(self, attempt: AttemptRecord, stored: Stored, finished_us: int) -> None:
        """Handle a success that an atomic body recorded itself."""

    @abstractmethod
    def _give_up(self, attempt: AttemptRecord) -> None:
        """Record that no attempt follows this one."""

    @abstractmethod
    def _refuse(self, error: BaseException) -> None:
        """Record that no attempt follows, for this reason."""

    @abstractmethod
    def _wait_until(self, when_us: int) -> None:
        """Make the next attempt at this time."""

    def _is_void(self, attempt: AttemptRecord) -> bool:
        """Close an attempt whose outcome no longer counts; return False if it does count."""
        return False

    def _interrupt(self) -> None:
        """Stop what the failed attempt began."""

    # Starting

    def _go_on(self) -> None:
        """Make the next attempt, or ask again how long to wait for it, after an earlier worker died or left."""
        attempt = self.cycle.history.unasked.get(self.record.seq)
        if attempt is None:
            self.start()
        elif callable(self.options.delay):
            self._ask(attempt, raised.again(attempt.error, self.label))
        else:  # the code has changed
            self._back_off(attempt, backoff_delay(self.options, self.budget.spent, rng=_rng))

    def _begin_attempt(self) -> AttemptRecord:
        """Return the record of a new attempt, which is written with the caller's changes."""
        cycle, seq = self.cycle, self.record.seq
        self.budget.attempts += 1
        self.record.wake_us = None
        quarantined = cycle.begin_body()
        host, number = cycle.host, self.budget.attempts
        attempt = AttemptRecord(
            seq, number, host.name, host.now_us(), quarantined=quarantined, phase=self.attempt_phase
        )
        cycle.history.unasked.pop(seq, None)
        self.attempt = attempt
        cycle.steps.enter(self, phases.STARTING)
        return attempt

    def _run(self, attempt: AttemptRecord) -> None:
        self.cycle.steps.enter(self, phases.RUNNING)
        self.cycle.host.run_body(self.cycle, self, attempt)

    # Ending

    def store(self, value: Any) -> Stored:
        """Return the value of a body as it is recorded."""
        what = f'output of step "{self.label}"'
        try:
            return self.codec.store(value, what=what)
        except InvalidValueError as problem:
            if not self.options.sensitive:
                raise
            raise output_masked(problem) from None

    def settle(
        self, attempt: AttemptRecord, *, stored: Stored | None = None, error: BaseException | None = None
    ) -> None:
        """Handle the end of the body. A late result of an attempt that is over is ignored."""
        if self.attempt is not attempt:
            return
        cycle = self.cycle
        cycle.end_body(self)
        if self._is_void(attempt):
            pass
        elif error is None:
            cycle.finish(attempt, AttemptStatus.COMPLETE)
            self._succeed(attempt, stored)
        else:
            self._fail(attempt, error)
        cycle.start_deferred()
        cycle.host.poke(cycle)

    def take_in(self, attempt: AttemptRecord, stored: Stored, finished_us: int) -> None:
        """Handle a success that an atomic body recorded itself, whatever phase the cycle is in."""
        if self.attempt is not attempt:
            return
        cycle = self.cycle
        cycle.end_body(self)
        attempt.status, attempt.finished_us = AttemptStatus.COMPLETE, finished_us
        self._take_in(attempt, stored, finished_us)
        cycle.start_deferred()
        cycle.host.poke(cycle)

    def _fail(self, attempt: AttemptRecord, error: BaseException) -> None:
        timed_out = isinstance(error, StepTimeoutError)
        self.cycle.finish(attempt, AttemptStatus.TIMED_OUT if timed_out else AttemptStatus.ERRORED)
        kept = ErrorRecord.of(error)
        attempt.error = failures.json_of(kept, error, step=self.label, attempts=attempt.number)
        self.cycle.failures.fail(attempt, self.record, kept, error)
        self.budget.spent += 1
        self.cycle.record(self.record, attempt)
        self._interrupt()
        if not is_retryable(error) or self.budget.spent >= self.options.max_attempts:
            self._give_up(attempt)
        elif callable(self.options.delay):
            attempt.error = raised.with_class(attempt.error, error)
            self._ask(attempt, error)
        else:
            self._back_off(attempt, backoff_delay(self.options, self.budget.spent, rng=_rng))

    # Backing off

    def _ask(self, attempt: AttemptRecord, error: BaseException) -> None:
        """Ask the delay function, once it is recorded that it has not answered: the step waits, for no time yet."""
        cycle, record = self.cycle, self.record
        record.wake_us = None
        cycle.history.unasked[record.seq] = attempt
        cycle.steps.enter(self, phases.ASKING_DELAY)
        if cycle.quarantined:  # the function may have killed its worker: do not ask it in the next one
            record.wake_us = after(attempt, default_delay(self.options, self.budget.spent, rng=_rng))
        cycle.writes.committed.append(lambda: self._ask_now(attempt, error))
        self._note_asking()
        cycle.record(record)

    def _note_asking(self) -> None:
        """Record that the step waits."""

    def _ask_now(self, attempt: AttemptRecord, error: BaseException) -> None:
        if self.phase is phases.ASKING_DELAY:
            self.cycle.host.ask_delay(self.cycle, self, attempt, error)

    def back_off(self, attempt: AttemptRecord, *, delay: timedelta | None = None) -> None:
        """Handle the answer of the delay function; without an answer, the default applies."""
        if self._is_answered():
            if delay is None:
                delay = default_delay(self.options, self.budget.spent, rng=_rng)
            self._back_off(attempt, delay)
            self.cycle.host.poke(self.cycle)

    def give_up(self, attempt: AttemptRecord, error: BaseException | None = None) -> None:
        """Make no further attempt: the delay function said so, or failed with this error."""
        if self._is_answered():
            if error is None:
                self._give_up(attempt)
            else:
                self._refuse(error)
            self.cycle.host.poke(self.cycle)

    def hasten(self, when_us: int) -> None:
        """Make the next attempt at this earlier time, also if the delay function has not answered."""
        if self._is_answered():
            self.cycle.steps.enter(self, phases.BACKING_OFF)
        self.arm(when_us)

    def _is_answered(self) -> bool:
        """Note that the function has answered. Return False if nothing waits for the answer any more."""
        if self.phase is not phases.ASKING_DELAY:
            return False
        self.cycle.steps.enter(self, phases.WAITING)
        self.cycle.history.unasked.pop(self.record.seq, None)
        return True

    def _back_off(self, attempt: AttemptRecord, delay: timedelta) -> None:
        """Wait, counted from the failure: a crash in between makes it neither longer nor shorter."""
        self.cycle.history.unasked.pop(self.record.seq, None)
        self.cycle.steps.enter(self, phases.BACKING_OFF)
        self._wait_until(after(attempt, delay))


def after(attempt: AttemptRecord, delay: timedelta) -> int:
    """Return the time of this delay after the end of the attempt."""
    return (attempt.finished_us or attempt.started_us) + delay // MICROSECOND
