"""The body of a `do` step, and its attempts."""

from __future__ import annotations

from collections.abc import Iterable

from engine.replay.attempts import functions
from engine.replay.attempts.attempt import MAX_CRASHES, AttemptedOperation
from engine.replay.calls import phases
from engine.replay.records import outcomes
from engine.replay.records.history import AttemptRecord, LogLine, StepRecord
from engine.replay.records.log_lines import log_line, not_kept
from engine.replay.records.sensitive import MASK
from engine.replay.state import DRIVING
from engine.values.errors import WorkerLostError
from engine.values.retry import OnExhausted
from engine.values.serialization import Stored
from engine.values.states import AttemptPhase, AttemptStatus, StepStatus


class DoOperation(AttemptedOperation):
    """A call of `step.do`: what to run, and how."""

    attempt_phase = AttemptPhase.DO

    @property
    def is_called_off(self) -> bool:
        """Tell whether the step must not begin after all, when its first attempt has been recorded."""
        return False

    @property
    def may_run(self) -> bool:
        """Tell whether its body may begin in this cycle."""
        return self.cycle.phase is DRIVING

    @property
    def is_pausing(self) -> bool:
        """Tell whether the instance pauses when its attempts are used up."""
        return self.options.on_exhausted is OnExhausted.PAUSE

    @property
    def is_alone(self) -> bool:
        """Tell whether no body of the instance would run beside its own."""
        return not self.cycle.steps.bodies

    def inner(self) -> Iterable[StepRecord]:
        return self.cycle.history.beneath(self.record.seq)

    # Starting

    def begin(self) -> None:
        """Continue from what is recorded: a first attempt, the next one after a loss, or the rest of a backoff."""
        record = self.record
        if not record.is_recorded:
            record.options = functions.options_json(self.options)
            record.sensitive = self.options.sensitive
        if record.is_exhausted:
            self.cycle.steps.enter(
                self, phases.WAITING
            )  # only where nothing is written: other cycles halt before
            return
        self.cycle.close_lost(record)
        if record.crashes >= MAX_CRASHES:
            self._refuse(WorkerLostError(self.label, record.crashes))
        elif record.status != StepStatus.WAITING:
            self.start()
        elif record.wake_us is None:
            self._go_on()
        else:
            self.cycle.steps.enter(self, phases.BACKING_OFF)
            self.cycle.wait_until(self, record.wake_us, is_new=False)

    def fire(self) -> None:
        self.start()

    def start(self) -> None:
        """Record an attempt; its body runs once that is committed."""
        cycle, record = self.cycle, self.record
        # If the cycle is leaving, the next worker starts it, unless a pause is withdrawn first.
        if not self.may_run or (cycle.quarantined and not self.is_alone):
            cycle.steps.enter(self, phases.DEFERRED)
            return
        record.status = StepStatus.RUNNING
        attempt = self._begin_attempt()
        if record.is_nested:
            cycle.writes.committed.append(lambda: self._started(attempt, left_out=False))
        else:
            cycle.writes.starts.add(record.seq)
            cycle.writes.then.append(lambda left_out: self._started(attempt, left_out=left_out))
        cycle.record(record, attempt)

    def _started(self, attempt: AttemptRecord, *, left_out: bool) -> None:
        cycle = self.cycle
        if left_out:  # then it was never recorded, even if it has been cancelled since
            cycle.writes.attempts.pop((attempt.step_seq, attempt.number), None)
            self.record.attempts -= 1
        if self.attempt is not attempt:
            return
        if left_out:
            cycle.steps.end_body(self)
            cycle.host.poke(cycle)
        elif not self.may_run:
            cycle.cancel_attempt(self)
            cycle.record(self.record)
            cycle.steps.enter(self, phases.DEFERRED)
            cycle.host.poke(cycle)
        elif self.is_called_off:
            cycle.cancel_attempt(self)
            self._call_off()
        else:
            self._run(attempt)

    def _call_off(self) -> None:
        """End an inner step that its owner no longer wants."""
        cycle = self.cycle
        cycle.steps.enter(self, phases.CLOSED)
        cycle.cancel_record(self.record)
        if self.owner is not None:
            self.owner.settled(self)
        cycle.host.poke(cycle)

    # Ending

    def _is_void(self, attempt: AttemptRecord) -> bool:
        cycle = self.cycle
        if cycle.is_ending:
            cycle.finish(attempt, AttemptStatus.CANCELLED)
            cycle.record(self.record, attempt)
            return True
        if self.options.atomic and not self.phase.is_open:
            # The handler cancelled it while it was being committed, and the commit failed.
            cycle.finish(attempt, AttemptStatus.CANCELLED)
            cycle.writes.add_attempt(attempt)
            cycle.cancel_record(self.record)
            return True
        return False

    def _succeed(self, attempt: AttemptRecord, stored: Stored | None) -> None:
        self.cycle.writes.add_attempt(attempt)
        self.live = stored
        self._say_dropped(attempt, stored)
        self._conclude(output=stored.text if stored is not None else "null")

    def _take_in(self, attempt: AttemptRecord, stored: Stored, finished_us: int) -> None:
        self.live = stored
        self._say_dropped(attempt, stored)
        self.cycle.take_in(self, output=stored.text, finished_us=finished_us)

    def _say_dropped(self, attempt: AttemptRecord, stored: Stored | None) -> None:
        """Log a warning if the output had keys that its type does not declare."""
        if stored is not None and stored.dropped:
            where = MASK if self.options.sensitive else stored.dropped
            line = log_line("warning", not_kept(where), {}, self.cycle.host.now_us())
            self.cycle.add_log(LogLine(*line, step_seq=attempt.step_seq, attempt=attempt.number))

    def _give_up(self, attempt: AttemptRecord) -> None:
        self._fail_or_pause(attempt.error)

    def _fail_or_pause(self, error: str | None) -> None:
        if self.is_pausing and error is not None:
            self._exhaust(error)
        else:
            self._conclude(error=error)

    def _refuse(self, error: BaseException) -> None:
        self._fail_or_pause(outcomes.error_json(error, step=self.label, attempts=self.record.attempts))

    def _exhaust(self, error: str) -> None:
        """Leave it to a person what follows: the step has its last error, and waits for no time."""
        record = self.record
        record.status, record.error, record.wake_us = StepStatus.WAITING, error, None
        self.cycle.steps.enter(self, phases.WAITING)
        self.cycle.record(record)
        self.cycle.halt(record)

    def _conclude(self, *, output: str | None = None, error: str | None = None) -> None:
        """End the step for good, with nested steps that an earlier attempt began and the last one did not call."""
        if self.cycle.history.inner:
            self.cycle.cancel_inner(self)
        self.cycle.conclude(self, output=output, error=error)

    def _note_asking(self) -> None:
        self.record.status = StepStatus.WAITING

    def _wait_until(self, when_us: int) -> None:
        self.record.status = StepStatus.WAITING
        self.cycle.wait_until(self, when_us)

    # The steps that its body called

    def _interrupt(self) -> None:
        """Stop the steps that the failed body called. They spend nothing, and the next attempt continues them."""
        if self.cycle.history.inner:
            for record in list(self.inner()):
                if not record.is_final:
                    self._interrupt_inner(record)

    def _interrupt_inner(self, record: StepRecord) -> None:
        cycle = self.cycle
        call = cycle.steps.open.get(record.seq)
        if call is not None and call.attempt is not None:
            cycle.host.cancel_body(cycle, call.attempt)
            cycle.cancel_attempt(call)
            cycle.record(record)
        cycle.steps.abandon(record.seq)
        if not record.attempts:  # it was deferred while the instance ran alone: no such step exists
            cycle.history.forget_inner(record)
            cycle.step_count.forget_nested()
