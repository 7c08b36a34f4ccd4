"""What a cycle knows of its instance and wants written, as its operations see it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from engine.replay.calls import phases
from engine.replay.calls.call import Call
from engine.replay.calls.deliveries import Deliveries
from engine.replay.calls.identities import Identities
from engine.replay.calls.steps import StepCount, Steps
from engine.replay.handler.loop import HandlerLoop
from engine.replay.host import Claimed, Host, Phase
from engine.replay.records import outcomes
from engine.replay.records.failures import Failures
from engine.replay.records.history import AttemptRecord, History, LogLine, StepRecord
from engine.replay.records.log_lines import log_line
from engine.replay.records.writes import Writes
from engine.replay.waiting.matching import EventBuffer, EventMatching, OpenWaits
from engine.replay.waiting.relations import Relations
from engine.replay.waiting.timers import Timers
from engine.replay.waiting.wake_ups import WakeUps
from engine.values.errors import CodeChangedError, NonDeterminismError
from engine.values.identity import StepIdentity
from engine.values.serialization import JSON
from engine.values.states import AttemptStatus, StepKind, StepStatus

if TYPE_CHECKING:
    from engine.declare.registry import Workflow

# Read at every step, and looking up a member of an Enum is slow.
DRIVING, ENDING = Phase.DRIVING, Phase.ENDING


class CycleState(ABC):
    """The parts of a cycle, each of which changes only itself, and the changes that concern several of them."""

    def __init__(
        self, host: Host[Any, Any], workflow: Workflow[Any, Any], claimed: Claimed, history: History
    ) -> None:
        self.host = host
        self.workflow = workflow
        self.claimed = claimed
        self.history = history
        # The remaining methods of an event loop are set after the class, and refuse every call.
        self.loop = HandlerLoop(claimed.workflow, claimed.id)  # type: ignore[abstract]
        self.main: asyncio.Task[Any] | None = None  # the handler's
        self.phase = Phase.DRIVING  # changed by `Exit` only
        self.writes = Writes()
        self.failures = Failures(claimed.workflow)
        self.signals = claimed.signals
        self.now_us = claimed.started_us  # as the handler sees it
        self.log_position = 0  # of the handler's last line
        self.is_resting = False  # it was claimed just before it is due, and waits for that moment

        self.steps = Steps()
        self.timers = Timers(self.steps.open)
        self.wake_ups = WakeUps(history, self.steps.open)
        self.quarantined = claimed.quarantined
        self.has_quarantined_body = False  # one whose attempt is recorded as quarantined
        self.deliveries = Deliveries()
        self.identities = Identities(
            history, self.deliveries.entered, is_by_name=workflow.step_identity == "name"
        )
        self.step_count = StepCount(history, workflow.max_steps)
        self.waits = OpenWaits()
        self.events = EventBuffer(history.events)
        self.matching = EventMatching(self.events, self.waits, lambda: host.read_events(self))
        self.relations = Relations(history, claimed.generation)
        self.undoable: dict[StepIdentity, Call] = {}  # called with a rollback
        self.exhausted = history.exhausted()  # by number: it pauses until a person has decided what follows

    @abstractmethod
    def pause_with_reason(self, error: NonDeterminismError | CodeChangedError) -> None:
        """Pause with an error: nothing runs or is overwritten until the code changes or an operator acts."""

    @abstractmethod
    def halt(self, exhausted: StepRecord) -> None:
        """Pause, as soon as the running bodies have ended: the attempts of this step are used up."""

    @property
    def is_driving(self) -> bool:
        return self.phase is DRIVING

    @property
    def is_quiescing(self) -> bool:
        return self.phase is Phase.QUIESCING

    @property
    def is_ending(self) -> bool:
        return self.phase is ENDING

    @property
    def has_handler(self) -> bool:
        """Tell whether the handler can be driven on."""
        return self.main is not None and not self.loop.is_closed()

    # Writing

    def record(self, record: StepRecord, attempt: AttemptRecord | None = None) -> None:
        """Write a step, and an attempt at it, with the next flush."""
        self.writes.steps[record.seq] = record
        if not (record.is_recorded or record.is_nested):
            self.writes.starts.add(record.seq)
        if attempt is not None:
            self.writes.attempts[record.seq, attempt.number] = attempt
        self.host.flush(self)

    def add_log(self, line: LogLine) -> None:
        if self.phase is not Phase.LEFT:  # otherwise it is of a body that has outlived its attempt
            self.writes.logs.append(line)
            self.host.flush(self)

    def say(self, level: str, message: str, fields: dict[str, JSON]) -> None:
        """Write a line to the handler's log, once over all replays."""
        self.log_position += 1
        if self.phase is Phase.DRIVING and self.log_position > self.history.log_lines:
            line = log_line(level, message, fields, self.host.now_us())
            self.add_log(LogLine(*line, position=self.log_position))

    def take_writes(self) -> Writes:
        """Return what is to be written, for a flush."""
        taken, self.writes = self.writes, Writes()
        return taken

    def put_back(self, writes: Writes) -> None:
        """Keep what could not be written, with what was added since."""
        writes.absorb(self.writes)
        self.writes = writes

    # Starting

    def enter(self, call: Call) -> Coroutine[Any, Any, Any]:
        """Accept a call of the handler: replay its outcome, or start it once nothing is left to replay."""
        self.deliveries.enter(call)
        return call  # type: ignore[return-value]  # the loop makes a coroutine of it where one is needed

    def start(self, call: Call) -> None:
        """Begin a step, or continue it."""
        self.number(call.record)
        self.steps.enter(call, phases.WAITING)
        call.begin()

    def number(self, record: StepRecord) -> None:
        if not record.seq:
            self.history.last_seq += 1
            record.seq = self.history.last_seq
            record.started_us = self.host.now_us()

    def start_deferred(self) -> None:
        """Start deferred attempts that may begin now."""
        if not self.steps.deferred:
            return
        for call in list(self.steps.deferred.values()):
            if call.phase is phases.DEFERRED:
                call.start()

    def wait_until(self, call: Call, when_us: int | None, *, is_new: bool = True) -> None:
        """Let a step wait, and fire it at this time."""
        record = call.record
        record.wake_us = when_us
        if is_new:
            self.record(record)
        if when_us is None:
            return
        if when_us <= self.host.due_us():
            call.fire()
        else:
            call.arm(when_us)

    def ask_for_wake_ups(self) -> None:
        """Ask for the times that people may have brought forward, if a signal came since the last answer."""
        if self.wake_ups.is_to_ask:
            self.wake_ups.ask()
            self.host.read_wake_ups(self)

    def rest_until(self, when_us: int) -> None:
        """Wait for the time for which it was claimed just before."""
        self.is_resting = True
        self.host.call_at(self, when_us)

    # Settling

    def conclude(self, call: Call, *, output: str | None = None, error: str | None = None) -> None:
        """Record the outcome of a step and deliver it in turn; the outcome of an inner step goes to its owner."""
        record = call.record
        record.status = StepStatus.COMPLETE if error is None else StepStatus.ERRORED
        record.output, record.error = output, error
        record.wake_us = None
        record.finished_us = self.host.now_us()
        self.steps.enter(call, phases.SETTLED)
        self.number_delivery(call)

    def take_in(self, call: Call, *, output: str, finished_us: int) -> None:
        """Deliver the outcome that an atomic step recorded itself, if a call still waits for it."""
        record = call.record
        record.status, record.output, record.finished_us = StepStatus.COMPLETE, output, finished_us
        record.stands = True
        is_wanted = call.phase.is_open and not self.is_ending
        self.steps.enter(call, phases.SETTLED)
        if is_wanted:
            self.number_delivery(call)

    def number_delivery(self, call: Call) -> None:
        """Give an outcome its place among the deliveries; the outcome of an inner step goes to its owner."""
        record = call.record
        self.record(record)
        if call.owner is None:
            self.history.last_delivery += 1
            record.delivery = self.history.last_delivery
            self.deliveries.arrived.append(call)
        else:
            call.owner.settled(call)
        self.host.poke(self)

    def deliver(self, call: Call) -> None:
        """Deliver the recorded outcome to a call and to those that follow it."""
        self.steps.enter(call, phases.DELIVERED)
        if not call.done():
            self._hand_over(call)
        for one in call.followers:
            if not one.done():
                self._hand_over(one)

    def _hand_over(self, call: Call) -> None:
        record = call.record
        if record.status == StepStatus.COMPLETE:
            try:
                value = call.decode(record.output or "null") if call.live is None else call.live.value
            except Exception as error:  # noqa: BLE001 - the types are the user's
                self.pause_with_reason(outcomes.output_refused(record, error))
                return
            call.set_result(value)
        else:
            call.set_exception(call.recorded_error())

    def forget(self) -> None:
        """Let go of the steps once the instance has left: they are freed at once, and not by a later collection.

        A call refers to its cycle, which refers to its calls. The collector took a sixth of a busy worker's time.
        """
        self.deliveries.entered.clear()
        self.undoable.clear()
        self.history.steps.clear()
        self.history.inner.clear()

    # Attempts that are over

    def finish(self, attempt: AttemptRecord, status: AttemptStatus) -> None:
        attempt.status = status
        attempt.finished_us = self.host.now_us()

    def end_body(self, call: Call) -> None:
        """Note that a body has ended without killing its worker: the instance leaves quarantine."""
        self.steps.end_body(call)
        if self.quarantined:
            self.clear()
        if not self.steps.bodies:
            self.host.rested(self)

    def clear(self) -> None:
        """Let others run beside the instance: it has not killed its worker."""
        self.quarantined = False
        self.host.cleared(self)

    def begin_body(self) -> bool:
        """Note that a body is about to begin. Return whether a crash would count: it is alone in quarantine."""
        is_alone = self.quarantined and self.host.holds_only(self)
        if not is_alone:
            self.run_beside()
        self.has_quarantined_body = is_alone
        return is_alone

    def run_beside(self) -> None:
        """Note that another body begins in this worker: if the worker dies now, those that run were not alone."""
        if not self.has_quarantined_body:
            return
        self.has_quarantined_body = False
        for attempt in self.steps.attempts():
            attempt.quarantined = False
            self.writes.add_attempt(attempt)
        self.host.flush(self)

    def cancel_attempt(self, call: Call) -> None:
        """Close an attempt of a worker that drains, or of an instance that is stopped. It spends nothing."""
        attempt = call.attempt
        assert attempt is not None
        self.steps.end_body(call)
        self.finish(attempt, AttemptStatus.CANCELLED)
        self.writes.add_attempt(attempt)

    def close_lost(self, record: StepRecord) -> None:
        """Close the attempt that a dead worker left behind. It spends nothing; in quarantine it counts as a crash."""
        attempt = self.history.running.pop(record.seq, None)
        if attempt is None:
            return
        self.finish(attempt, AttemptStatus.LOST)
        self.failures.lose(attempt, record)
        record.lost += 1
        record.crashes += attempt.quarantined
        self.record(record, attempt)

    def close_left_behind(self) -> None:
        """Close the attempts of a dead worker that this one did not continue: it leaves, perhaps for long."""
        for record in self.history.steps.values():
            if record.seq in self.history.running:
                self.close_lost(record)
                self.wait_for_next(record)
            for attempt in self.history.undoing.get(record.seq, ()):
                if attempt.status == AttemptStatus.RUNNING:
                    self.finish(attempt, AttemptStatus.LOST)
                    self.failures.lose(attempt, record)
                    self.record(record, attempt)

    def wait_for_next(self, record: StepRecord) -> None:
        """Mark a step whose attempt was lost as waiting, and due: the next worker makes the next attempt at once."""
        if record.status == StepStatus.RUNNING:
            record.status, record.wake_us = StepStatus.WAITING, self.host.now_us()

    # Cancelling

    def cancel_inner(self, call: Call) -> None:
        """Cancel the inner steps of a step that is over."""
        inner = [one for one in call.inner() if one.seq and not one.is_final]
        for one in inner:  # first, or a deferred one would begin when the body before it is dropped
            self.steps.abandon(one.seq)
        for one in inner:
            self.cancel(one)

    def cancel(self, record: StepRecord) -> None:
        """Cancel a step for good, unless its body is already being committed."""
        # An earlier worker may have recorded an attempt that this one has not continued.
        self.close_lost(record)
        self.steps.abandon(record.seq)
        call = self.steps.bodies.get(record.seq)
        if call is not None and call.attempt is not None:
            if not self.host.cancel_body(self, call.attempt):
                return
            self.cancel_attempt(call)
            self.start_deferred()
        self.cancel_record(record)

    def cancel_record(self, record: StepRecord) -> None:
        record.status = StepStatus.CANCELLED
        record.wake_us = record.error = None
        record.finished_us = self.host.now_us()
        if record.kind == StepKind.CHILD:
            self.writes.children.pop(record.seq, None)
            self.writes.notify_pending = True
        self.record(record)
