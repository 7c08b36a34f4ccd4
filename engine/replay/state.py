"""What a cycle knows of its instance, and what it wants written: its operations see it so."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from engine.replay import outcomes, phases
from engine.replay.call import Call
from engine.replay.counting import StepCount
from engine.replay.deliveries import Deliveries
from engine.replay.event_buffer import EventBuffer
from engine.replay.history import AttemptRecord, History, LogLine, StepRecord
from engine.replay.host import Claimed, Host, Phase
from engine.replay.identities import Identities
from engine.replay.loop import HandlerLoop
from engine.replay.matching import EventMatching
from engine.replay.open_waits import OpenWaits
from engine.replay.relations import Relations
from engine.replay.steps import Steps
from engine.replay.timers import Timers
from engine.replay.writes import Writes
from engine.values.errors import CodeChangedError, NonDeterminismError
from engine.values.identity import StepIdentity
from engine.values.serialization import JSON
from engine.values.states import AttemptStatus, StepKind, StepStatus

if TYPE_CHECKING:
    from engine.declare.registry import Workflow

# Asked for at every step, and a member of an Enum takes long to look up.
DRIVING, ENDING = Phase.DRIVING, Phase.ENDING


class CycleState(ABC):
    """The parts of a cycle, each of which changes itself, and the changes that concern several of them."""

    def __init__(
        self, host: Host[Any, Any], workflow: Workflow[Any, Any], claimed: Claimed, history: History
    ) -> None:
        self.host = host
        self.workflow = workflow
        self.claimed = claimed
        self.history = history
        # The rest of an event loop is refused by methods that are set afterwards.
        self.loop = HandlerLoop(claimed.workflow, claimed.id)  # type: ignore[abstract]
        self.main: asyncio.Task[Any] | None = None  # the handler's
        self.phase = Phase.DRIVING  # changed by `Exit` only
        self.writes = Writes()
        self.signals = claimed.signals
        self.now_us = claimed.started_us  # what the handler is told
        self.log_position = 0  # of the handler's last line
        self.is_resting = False  # claimed a moment before its time, it only waits for that

        self.steps = Steps()
        self.timers = Timers(self.steps.open)
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

    @abstractmethod
    def pause_with_reason(self, error: NonDeterminismError | CodeChangedError) -> None:
        """Pause: nothing runs and nothing is overwritten until code or operator changes."""

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
        if self.phase is not Phase.LEFT:  # else a body says it that has outlived its attempt
            self.writes.logs.append(line)
            self.host.flush(self)

    def say(self, level: str, message: str, fields: dict[str, JSON]) -> None:
        """Write a line of the handler's log, once over all replays."""
        self.log_position += 1
        if self.phase is Phase.DRIVING and self.log_position > self.history.log_lines:
            line = outcomes.log_line(level, message, fields, self.host.now_us())
            self.add_log(LogLine(*line, position=self.log_position))

    def take_writes(self) -> Writes:
        """Return what is to be written, for a flush."""
        taken, self.writes = self.writes, Writes()
        return taken

    def put_back(self, writes: Writes) -> None:
        """Take what could not be written, with what came meanwhile."""
        writes.absorb(self.writes)
        self.writes = writes

    # Starting

    def enter(self, call: Call) -> Coroutine[Any, Any, Any]:
        """Take in a call of the handler: replay its outcome, or start it when nothing recorded is left to replay."""
        self.deliveries.enter(call)
        return call  # type: ignore[return-value]  # the loop makes a coroutine of it where one is needed

    def start(self, call: Call) -> None:
        """Begin a step, or go on with it."""
        self.number(call.record)
        self.steps.enter(call, phases.WAITING)
        call.begin()

    def number(self, record: StepRecord) -> None:
        if not record.seq:
            self.history.last_seq += 1
            record.seq = self.history.last_seq
            record.started_us = self.host.now_us()

    def start_deferred(self) -> None:
        """Start what was deferred, as far as it may begin now."""
        if not self.steps.deferred:
            return
        for call in list(self.steps.deferred.values()):
            if call.phase is phases.DEFERRED:
                call.start()

    def wait_until(self, call: Call, when_us: int | None, *, is_new: bool = True) -> None:
        """Let a step wait; when the time has come, it is fired."""
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

    def rest_until(self, when_us: int) -> None:
        """Stay for the moment that it was claimed ahead of its time."""
        self.is_resting = True
        self.host.call_at(self, when_us)

    # Settling

    def conclude(self, call: Call, *, output: str | None = None, error: str | None = None) -> None:
        """Record the outcome of a step and deliver it in its turn; an inner step's goes to its owner."""
        record = call.record
        record.status = StepStatus.COMPLETE if error is None else StepStatus.ERRORED
        record.output, record.error = output, error
        record.wake_us = None
        record.finished_us = self.host.now_us()
        self.steps.enter(call, phases.SETTLED)
        self.number_delivery(call)

    def take_in(self, call: Call, *, output: str, finished_us: int) -> None:
        """Deliver the outcome that an atomic step has recorded by itself, if anybody still waits for it."""
        record = call.record
        record.status, record.output, record.finished_us = StepStatus.COMPLETE, output, finished_us
        record.stands = True
        is_wanted = call.phase.is_open and not self.is_ending
        self.steps.enter(call, phases.SETTLED)
        if is_wanted:
            self.number_delivery(call)

    def number_delivery(self, call: Call) -> None:
        """Put an outcome into the order of deliveries; an inner step's goes to its owner."""
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
        """Give a call, and those that follow it, the outcome that is recorded."""
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

    # Attempts that are over

    def finish(self, attempt: AttemptRecord, status: AttemptStatus) -> None:
        attempt.status = status
        attempt.finished_us = self.host.now_us()

    def end_body(self, call: Call) -> None:
        """A body has ended and the worker lives: the instance leaves the quarantine."""
        self.steps.end_body(call)
        if self.quarantined:
            self.clear()
        if not self.steps.bodies:
            self.host.rested(self)

    def clear(self) -> None:
        """The instance has shown that it does not kill its worker: others may run beside it."""
        self.quarantined = False
        self.host.cleared(self)

    def begin_body(self) -> bool:
        """Take in that a body is about to begin; tell whether a crash would be its own: it is alone in quarantine."""
        is_alone = self.quarantined and self.host.holds_only(self)
        if not is_alone:
            self.run_beside()
        self.has_quarantined_body = is_alone
        return is_alone

    def run_beside(self) -> None:
        """Another body begins in this worker: whichever kills it, one that runs by now was not alone."""
        if not self.has_quarantined_body:
            return
        self.has_quarantined_body = False
        for attempt in self.steps.attempts():
            attempt.quarantined = False
            self.writes.add_attempt(attempt)
        self.host.flush(self)

    def cancel_attempt(self, call: Call) -> None:
        """Close an attempt whose worker drains or whose instance is stopped: it spends nothing."""
        attempt = call.attempt
        assert attempt is not None
        self.steps.end_body(call)
        self.finish(attempt, AttemptStatus.CANCELLED)
        self.writes.add_attempt(attempt)

    def close_lost(self, record: StepRecord) -> None:
        """Close the attempt that a dead worker left behind. It spends none; in quarantine it counts as a crash."""
        attempt = self.history.running.pop(record.seq, None)
        if attempt is None:
            return
        self.finish(attempt, AttemptStatus.LOST)
        record.lost += 1
        record.crashes += attempt.quarantined
        self.record(record, attempt)

    def close_left_behind(self) -> None:
        """Close what a dead worker left behind, where this one has not gone on with it: it leaves, maybe for long."""
        for record in self.history.steps.values():
            if record.seq in self.history.running:
                self.close_lost(record)
                self.wait_for_next(record)
            for attempt in self.history.undoing.get(record.seq, ()):
                if attempt.status == AttemptStatus.RUNNING:
                    self.finish(attempt, AttemptStatus.LOST)
                    self.record(record, attempt)

    def wait_for_next(self, record: StepRecord) -> None:
        """Say of a step whose attempt was lost that it waits: whoever goes on with it makes the next one at once."""
        if record.status == StepStatus.RUNNING:
            record.status, record.wake_us = StepStatus.WAITING, self.host.now_us()

    # Cancelling

    def cancel_inner(self, call: Call) -> None:
        """The step is over: cancel what belongs to it and is not."""
        inner = [one for one in call.inner() if one.seq and not one.is_final]
        for one in inner:  # before, or what is deferred would begin when the body before it is dropped
            self.steps.abandon(one.seq)
        for one in inner:
            self.cancel(one)

    def cancel(self, record: StepRecord) -> None:
        """Cancel a step for good, unless it is too late for that: its body is being committed."""
        # Recorded by an earlier worker, it may not have been begun by this one.
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
        record.wake_us = None
        record.finished_us = self.host.now_us()
        if record.kind == StepKind.CHILD:
            self.writes.children.pop(record.seq, None)
            self.writes.notify_pending = True
        self.record(record)
