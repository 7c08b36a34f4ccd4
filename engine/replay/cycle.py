"""One stay of an instance in a worker: replay what is recorded, go on from there, leave.

The main path is `advance`: run the handler until it waits; then give it the next recorded outcome, or, when none is
left, start what it called for the first time, or give it the next outcome that came in live; and when there is
nothing to give and no body of it runs, park. Every outcome gets a delivery number, recorded with it, and a replay
delivers in that order, so the handler takes the same turn each time.

Outcomes go to the handler before they are committed: handler code has no effects, and the commit that follows also
carries the start of what the handler called next. A body starts only after that commit.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol

from engine.errors import (
    ControlFlow,
    LimitError,
    NonDeterminismError,
    WorkflowTimeoutError,
)
from engine.identity import Counter, StepIdentity
from engine.replay import attempts, outcomes, waits
from engine.replay.history import AttemptRecord, EventRecord, History, LogLine, StepRecord
from engine.replay.loop import HandlerLoop
from engine.replay.operation import DoOperation, Operation, ProgressOperation, SleepOperation, WaitOperation
from engine.replay.outcomes import Ending
from engine.replay.step import WorkflowStep
from engine.replay.writes import Leave, Writes
from engine.serialization import JSON
from engine.states import InstanceStatus, StepKind, StepStatus, WaitingFor

if TYPE_CHECKING:
    import asyncio

    from engine.registry import Workflow


@dataclass(frozen=True, slots=True)
class Claimed:
    """An instance as it was claimed: what its cycle needs of the row."""

    key: int
    workflow: str
    id: str
    generation: int
    fence: int
    signals: int
    status: str
    params: str
    started_us: int
    deadline_us: int | None
    isolated: bool


class Phase(Enum):
    DRIVING = auto()
    FREEZING = auto()  # pausing or draining: bodies finish, the handler is not driven on
    ENDING = auto()  # the handler has ended: what is still open is being cancelled
    LEAVING = auto()  # the last write is on its way
    LEFT = auto()


class Host(Protocol):
    """What a cycle asks of the worker that holds it."""

    name: str

    def now_us(self) -> int:
        """Return the database's time, not earlier than it is: for deadlines and records."""

    def due_us(self) -> int:
        """Return the database's time, not later than it is: to tell what is due."""

    def poke(self, cycle: Cycle) -> None:
        """Call `cycle.advance()` soon, once."""

    def flush(self, cycle: Cycle) -> None:
        """Write `cycle.writes` soon, and call `cycle.written()`."""

    def call_at(self, cycle: Cycle, when_us: int) -> None:
        """Poke the cycle at this time; replaces what was asked before."""

    def run_body(self, cycle: Cycle, operation: DoOperation, attempt: AttemptRecord) -> None:
        """Run the body and call `attempts.settle`."""

    def cancel_body(self, cycle: Cycle, attempt: AttemptRecord) -> None:
        """Cancel an async body; set `ctx.cancelled` of a sync one."""

    def ask_delay(
        self, cycle: Cycle, operation: DoOperation, attempt: AttemptRecord, error: BaseException
    ) -> None:
        """Call the delay function and then `attempts.back_off`."""

    def read_events(self, cycle: Cycle) -> None:
        """Read the events that came since and call `cycle.on_events`."""

    def drive(self, cycle: Cycle) -> None:
        """Call `cycle.loop.drain()`, interrupting a handler that does not return."""

    def left(self, cycle: Cycle) -> None:
        """Forget the cycle."""

    def progressed(self, cycle: Cycle) -> None:
        """Take note that an isolated instance got on."""


class Cycle:
    def __init__(self, host: Host, workflow: Workflow[Any, Any], claimed: Claimed, history: History) -> None:
        self.host = host
        self.workflow = workflow
        self.claimed = claimed
        self.history = history
        self.loop = HandlerLoop()  # type: ignore[abstract]  # the rest is refused by methods set afterwards
        self.phase = Phase.DRIVING
        self.writes = Writes()
        self.signals = claimed.signals
        self.isolated = claimed.isolated

        self.counter = Counter()
        self.steps_done = 0  # calls of `do`, for max_steps
        self.log_position = 0
        self.now_us = claimed.started_us

        self.entered: dict[StepIdentity, Operation] = {}  # the first call of each identity
        self.recorded: list[tuple[int, int, Operation]] = []  # heap by delivery number
        self.fresh: deque[Operation] = deque()  # called, not recorded, not started
        self.open: dict[int, Operation] = {}  # started, without an outcome
        self.arrived: deque[Operation] = deque()  # with a live outcome, not delivered
        self.timers: list[tuple[int, int]] = []  # heap of (wake_us, seq); stale entries are skipped
        self.bodies: dict[int, AttemptRecord] = {}  # by step
        self.deferred: deque[DoOperation] = deque()  # kept back while isolated
        self.delaying: set[int] = set()  # steps whose delay function runs
        self.waits: dict[int, WaitOperation] = {}  # by seq, oldest first
        self.events: list[EventRecord] = history.events
        self.consumed: set[int] = set()  # keys of events; a read may still find them buffered
        self.events_as_of_us = history.as_of_us
        self.reading_events = False

        self.decided: ControlFlow | None = None
        self.forced: Ending | None = None
        self.is_recovering = False
        self.ending: Ending | None = None
        self.freezes_to = InstanceStatus.PAUSED
        self._main: asyncio.Task[Any] | None = None

    # Entering

    def begin(self) -> None:
        """Start the handler from the top."""
        if self.claimed.status == InstanceStatus.WAITING_FOR_PAUSE:
            self.freeze(InstanceStatus.PAUSED)
            return
        step = WorkflowStep(self)
        try:
            args = (self.workflow.params.decode(self.claimed.params),) if self.workflow.takes_params else ()
        except Exception as error:  # noqa: BLE001 - the types are the user's: whatever validators raise
            self.stick(outcomes.params_refused(error))
            return
        self._main = self.loop.create_task(self.workflow.handler(step, *args))
        if self.claimed.deadline_us is not None:
            heapq.heappush(self.timers, (self.claimed.deadline_us, 0))
        self.host.poke(self)

    # Turning

    def advance(self) -> None:
        """Do all that can be done now."""
        if self.phase is Phase.DRIVING:
            self._turn()
        if self.phase is Phase.FREEZING and not self.bodies and not self.delaying:
            self._leave(Leave(self.freezes_to))
        elif self.ending is not None and self.phase is Phase.ENDING and not self.bodies:
            self._write_end(self.ending)

    def _turn(self) -> None:
        self._fire_timers()
        while self.phase is Phase.DRIVING:
            self.host.drive(self)
            if self.phase is not Phase.DRIVING or self._has_ended():
                return
            if not (self._deliver_recorded() or self._start_fresh() or self._deliver_arrived()):
                self._rest()
                return

    def _has_ended(self) -> bool:
        if self.forced is not None:
            self._end(self.forced)
        elif self.decided is not None:
            self._end(outcomes.of_control_flow(self.decided, self.workflow))
        elif self._main is not None and self._main.done():
            self._end(outcomes.of_handler(self._main, self.workflow))
        else:
            return False
        return True

    def _deliver_recorded(self) -> bool:
        if not self.recorded:
            return False
        self._deliver(heapq.heappop(self.recorded)[2])
        return True

    def _deliver_arrived(self) -> bool:
        if not self.arrived:
            return False
        self._deliver(self.arrived.popleft())
        return True

    def _deliver(self, operation: Operation) -> None:
        record = operation.record
        self.now_us = record.finished_us or self.now_us
        for one in (operation, *operation.followers):
            if not one.done():
                self._hand_over(one)

    def _hand_over(self, operation: Operation) -> None:
        record = operation.record
        if record.status == StepStatus.COMPLETE:
            try:
                value = (
                    operation.decode(record.output or "null")
                    if operation.live is None
                    else operation.live.value
                )
            except Exception as error:  # noqa: BLE001 - the types are the user's
                self.stick(outcomes.output_refused(record, error))
                return
            operation.set_result(value)
        else:
            operation.set_exception(outcomes.recorded_error(record))

    def _start_fresh(self) -> bool:
        if not self.fresh:
            return False
        while self.fresh:
            operation = self.fresh.popleft()
            if not operation.done():
                self._start(operation)
        return True

    def _start(self, operation: Operation) -> None:
        record = operation.record
        self._number(record)
        self.open[record.seq] = operation
        match operation:
            case DoOperation():
                attempts.begin(self, operation)
            case SleepOperation():
                self._start_sleep(operation)
            case WaitOperation():
                waits.begin(self, operation)
            case ProgressOperation():
                self.conclude(operation, output=operation.output)

    def _number(self, record: StepRecord) -> None:
        if not record.seq:
            self.history.last_seq += 1
            record.seq = self.history.last_seq
            record.started_us = self.host.now_us()

    def _start_sleep(self, operation: SleepOperation) -> None:
        record = operation.record
        if not record.is_recorded:
            until = operation.until_us
            record.wake_us = until if until is not None else record.started_us + (operation.duration_us or 0)
            record.wake_is_fixed = until is not None
            record.status = StepStatus.WAITING
        self.wait_until(operation, record.wake_us)

    def _rest(self) -> None:
        """Nothing to give to the handler: wait for a body, or park."""
        if self.bodies or self.delaying or self.reading_events:
            self._arm()
        elif self.open:
            self._leave(self._parking())
        else:
            self._end(outcomes.deadlock())

    def _parking(self) -> Leave:
        wake_us, waiting_for = None, WaitingFor.EVENT
        while self.timers:
            wake_us, seq = self.timers[0]
            if seq == 0:
                kinds = [wakes(self.open[seq]) for _, seq in sorted(self.timers)[1:] if seq in self.open]
                waiting_for = kinds[0] if kinds else WaitingFor.EVENT
                break
            if seq in self.open and self.open[seq].record.wake_us == wake_us:
                waiting_for = wakes(self.open[seq])
                break
            heapq.heappop(self.timers)
            wake_us = None
        return Leave(InstanceStatus.WAITING, waiting_for, wake_us, signals=self.signals)

    # Timers

    def wait_until(self, operation: Operation, when_us: int | None) -> None:
        """Let the operation wait; when the time has come, `_fire_timers` sees to it."""
        record = operation.record
        record.wake_us = when_us
        self.record(record)
        if when_us is None:
            return
        if when_us <= self.host.due_us():
            self._fire(operation)
        else:
            heapq.heappush(self.timers, (when_us, record.seq))

    def _fire_timers(self) -> None:
        if not self.timers:
            return
        now = self.host.due_us()
        while self.timers and self.timers[0][0] <= now:
            when, seq = heapq.heappop(self.timers)
            if seq == 0:
                self._end(outcomes.of_error(WorkflowTimeoutError("timeout", self.workflow.timeout_or_zero)))
                return
            operation = self.open.get(seq)
            if operation is not None and operation.record.wake_us == when:
                self._fire(operation)

    def _fire(self, operation: Operation) -> None:
        match operation:
            case SleepOperation():
                self.conclude(operation)
            case WaitOperation():
                waits.expire(self, operation)
            case DoOperation():
                attempts.start(self, operation)

    def _arm(self) -> None:
        while self.timers:
            when, seq = self.timers[0]
            if seq == 0 or (seq in self.open and self.open[seq].record.wake_us == when):
                self.host.call_at(self, when)
                return
            heapq.heappop(self.timers)

    # Called by WorkflowStep

    def record_of(self, kind: StepKind, name: str, *, once: bool = False) -> StepRecord:
        """Fix the identity of a call, and return what is recorded under it, or a new record."""
        once = once or self.workflow.step_identity == "name"
        identity = self.counter.take(kind, name, once=once)
        record = self.history.steps.get(identity)
        if record is None:
            record = StepRecord(0, *identity, is_recorded=False)
            self.history.steps[identity] = record
        return record

    def enter(self, operation: Operation) -> Operation:
        """Take in a call of the handler: replay its outcome, or start it when nothing recorded is left to replay."""
        record = operation.record
        first = self.entered.setdefault(record.identity, operation)
        if first is not operation and not first.done():
            first.followers.append(operation)
        elif record.is_final:
            if record.delivery is not None:
                heapq.heappush(self.recorded, (record.delivery, len(self.recorded), operation))
        else:
            self.fresh.append(operation)
        return operation

    def count_step(self) -> None:
        self.steps_done += 1
        if self.steps_done > self.workflow.max_steps:
            raise LimitError(
                "number of steps of an instance",
                self.steps_done,
                self.workflow.max_steps,
                advice="Split the work over child instances, or raise max_steps of the workflow.",
            )

    def decide(self, flow: ControlFlow) -> ControlFlow:
        """End the instance so, whatever the handler does with the exception; return what to raise."""
        if self.loop.is_closed():
            return flow
        self.decided = self.decided or flow
        return self.decided

    def decide_quietly(self, ending: Ending) -> None:
        """End the instance so, without asking the handler: it does not listen."""
        self.forced = self.forced or ending

    @property
    def is_driving(self) -> bool:
        return self.phase is Phase.DRIVING

    @property
    def is_ending(self) -> bool:
        return self.phase is Phase.ENDING

    def say(self, level: str, message: str, fields: dict[str, JSON]) -> None:
        """Write a line of the handler's log, once over all replays."""
        self.log_position += 1
        if self.phase is Phase.DRIVING and self.log_position > self.history.log_lines:
            line = outcomes.log_line(level, message, fields, self.host.now_us())
            self.add_log(LogLine(*line, position=self.log_position))

    def withdraw(self, operation: Operation) -> None:
        """The handler has cancelled this operation."""
        if self.loop.is_closed():
            return  # it is being closed, not cancelled
        record = operation.record
        if self.open.pop(record.seq, None) is None:
            return
        self.waits.pop(record.seq, None)
        attempts.drop(self, record)
        self._cancel_record(record)

    # Recording

    def record(self, record: StepRecord, attempt: AttemptRecord | None = None) -> None:
        """Write a step, and an attempt at it, with the next flush."""
        self.writes.steps[record.seq] = record
        if not record.is_recorded:
            self.writes.starts.add(record.seq)
        if attempt is not None:
            self.writes.attempts[record.seq, attempt.number] = attempt
        self.host.flush(self)

    def add_log(self, line: LogLine) -> None:
        self.writes.logs.append(line)
        self.host.flush(self)

    def conclude(self, operation: Operation, *, output: str | None = None, error: str | None = None) -> None:
        """Record the outcome of an operation and deliver it in its turn."""
        record = operation.record
        record.status = StepStatus.COMPLETE if error is None else StepStatus.ERRORED
        record.output, record.error = output, error
        record.wake_us = None
        record.finished_us = self.host.now_us()
        self.history.last_delivery += 1
        record.delivery = self.history.last_delivery
        self.open.pop(record.seq, None)
        self.arrived.append(operation)
        self.record(record)
        self.host.poke(self)

    def _cancel_record(self, record: StepRecord) -> None:
        record.status = StepStatus.CANCELLED
        record.wake_us = None
        record.finished_us = self.host.now_us()
        self.record(record)

    def written(self, status: str, signals: int, *, leave: Leave | None, has_left: bool) -> None:
        """Take in the answer to a flush: what the row said when the writes, with this `leave`, were made.

        An answer that comes while the cycle leaves may belong to an earlier flush: the one that leaves is still on
        its way then, and finds out by itself what the row says.
        """
        if leave is not None:
            self._answer_to_leaving(status, signals, has_left=has_left)
        else:
            self.on_signals(status, signals)

    # Signals

    def on_signals(self, status: str, signals: int) -> None:
        """Somebody changed the row: an event came, or a pause was asked for or withdrawn."""
        if signals <= self.signals or self.phase is not Phase.DRIVING:
            return
        self.signals = signals
        if status == InstanceStatus.WAITING_FOR_PAUSE:
            self.freeze(InstanceStatus.PAUSED)
        else:
            self.read_events()

    def read_events(self) -> None:
        if not self.reading_events:
            self.reading_events = True
            self.host.read_events(self)

    def on_events(self, events: list[EventRecord], signals: int, as_of_us: int) -> None:
        """Take in the events that had come by then; `signals` is what the row said before they were read."""
        self.reading_events = False
        self.events_as_of_us = as_of_us
        if self.phase is not Phase.DRIVING:
            return
        self.signals = max(self.signals, signals)
        known = {event.key for event in self.events} | self.consumed
        self.events += [event for event in events if event.key not in known]
        waits.match(self)
        waits.expire_overdue(self)
        self.host.poke(self)

    # Leaving

    def freeze(self, to: InstanceStatus) -> None:
        """Stop driving the handler; leave when the running bodies have ended: paused, or given back as queued."""
        if self.phase is Phase.DRIVING:
            self.phase = Phase.FREEZING
            self.freezes_to = to
            self.loop.shut()
            self.host.poke(self)

    def stick(self, error: NonDeterminismError) -> None:
        """Pause with a reason: nothing runs and nothing is overwritten until code or operator changes."""
        self._stop()
        self._cancel_bodies()
        self._leave(Leave(InstanceStatus.PAUSED, error=outcomes.error_json(error), insists=True))

    def recover(self, error: Exception) -> None:
        """The database refuses what this cycle writes, or the engine failed: end with that error, and only that."""
        refused, self.writes = self.writes, Writes()
        if self.is_recovering:
            self.abandon()
            return
        self.is_recovering = True
        self._stop()
        self._cancel_bodies()
        for record in [*self.history.steps.values(), *refused.steps.values()]:
            if record.is_recorded and (not record.is_final or record.seq in refused.steps):
                record.delivery = record.output = record.error = None
                self._cancel_record(record)
        self._leave(Leave(InstanceStatus.ERRORED, error=outcomes.error_json(error)))

    def _stop(self) -> None:
        """Drive the handler no more; its coroutines are closed."""
        self.phase = Phase.LEAVING
        self.loop.shut()

    def abandon(self) -> None:
        """The lease is lost: stop everything, write nothing."""
        if self.phase is Phase.LEFT:
            return
        self.phase = Phase.LEFT
        self.loop.shut()
        for attempt in list(self.bodies.values()):
            self.host.cancel_body(self, attempt)
        self.bodies.clear()
        self.writes = Writes()
        self.host.left(self)

    def give_back(self) -> None:
        """The grace of a draining worker is over: cancel the bodies, spend no attempt, leave."""
        self.freeze(InstanceStatus.QUEUED)
        self._cancel_bodies()
        self.delaying.clear()
        self.host.poke(self)

    def _cancel_bodies(self) -> None:
        for seq, attempt in list(self.bodies.items()):
            self.host.cancel_body(self, attempt)
            attempts.cancel(self, seq, attempt)

    def _end(self, ending: Ending) -> None:
        """The handler has ended: cancel what is open, wait for bodies to let go, then write the outcome."""
        self.phase = Phase.ENDING
        self.ending = ending
        self.loop.shut()
        self._number_fresh()
        self.deferred.clear()
        for attempt in self.bodies.values():
            self.host.cancel_body(self, attempt)
        self.host.poke(self)

    def _number_fresh(self) -> None:
        """Calls that were never awaited long enough to start are recorded too, as cancelled."""
        for operation in self.fresh:
            if not operation.done():
                self._number(operation.record)
        self.fresh.clear()

    def _write_end(self, ending: Ending) -> None:
        for record in self.history.steps.values():
            if record.seq and not record.is_final:
                attempts.close_lost(self, record)
                self._cancel_record(record)
        self.open.clear()
        self._leave(Leave(ending.status, output=ending.output, error=ending.error))

    def _leave(self, leave: Leave) -> None:
        self.phase = Phase.LEAVING
        self.writes.leave = leave
        self.host.flush(self)

    def _answer_to_leaving(self, status: str, signals: int, *, has_left: bool) -> None:
        if has_left:
            self.phase = Phase.LEFT
            self.loop.shut()
            self.host.left(self)
        elif self._main is None or self.loop.is_closed():
            # A pause that was withdrawn: the handler is gone, so go on with a fresh replay.
            self._leave(Leave(InstanceStatus.QUEUED))
        else:
            self.phase = Phase.DRIVING
            self.on_signals(status, signals)
            self.host.poke(self)


def wakes(operation: Operation) -> WaitingFor:
    match operation.record.kind:
        case StepKind.SLEEP:
            return WaitingFor.SLEEP
        case StepKind.DO:
            return WaitingFor.RETRY
        case _:
            return WaitingFor.EVENT
