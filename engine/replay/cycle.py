"""One stay of an instance in a worker: replay what is recorded, go on from there, leave.

The main path is `advance`: run the handler until it waits; then give it the next recorded outcome, or, when none is
left, start what it called for the first time, or give it the next outcome that came in live; and when there is
nothing to give and no body of it runs, park. Every outcome gets a delivery number, recorded with it, and a replay
delivers in that order, so the handler takes the same turn each time.

Outcomes go to the handler before they are committed: handler code has no effects, and the commit that follows also
carries the start of what the handler called next. A body starts only after that commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from engine.errors import ControlFlow, WorkflowTimeoutError
from engine.identity import Counter, StepIdentity
from engine.replay import changed_code, leaving, outcomes, rollback, waits
from engine.replay.counting import StepCount
from engine.replay.deliveries import Deliveries
from engine.replay.event_buffer import EventBuffer
from engine.replay.history import AttemptRecord, History, LogLine, Page, StepRecord
from engine.replay.host import Claimed, Host, Phase
from engine.replay.loop import HandlerLoop
from engine.replay.open_waits import OpenWaits
from engine.replay.operation import DoOperation, Operation
from engine.replay.outcomes import Ending
from engine.replay.relations import Relations
from engine.replay.rollback import Undoing
from engine.replay.step import WorkflowStep
from engine.replay.timers import DEADLINE, Timers
from engine.replay.writes import Leave, Writes
from engine.serialization import JSON
from engine.states import InstanceStatus, StepKind, StepStatus

if TYPE_CHECKING:
    import asyncio

    from engine.registry import Workflow


NONE: Mapping[StepIdentity, StepRecord] = {}
STEERED = (Phase.DRIVING, Phase.FREEZING, Phase.ROLLING_BACK)


class Cycle:
    def __init__(self, host: Host, workflow: Workflow[Any, Any], claimed: Claimed, history: History) -> None:
        self.host = host
        self.workflow = workflow
        self.claimed = claimed
        self.history = history
        # The rest of an event loop is refused by methods that are set afterwards.
        self.loop = HandlerLoop(claimed.workflow, claimed.id)  # type: ignore[abstract]
        self.phase = Phase.DRIVING
        self.writes = Writes()
        self.left_out = Writes()  # by a pause that may yet be withdrawn
        self.signals = claimed.signals
        self.isolated = claimed.isolated
        self.undoing: Undoing | None = None  # once the rollbacks have begun

        self.counter = Counter()
        self.step_count = StepCount(history, workflow.max_steps)
        self.old_milestones: dict[StepIdentity, StepRecord] | None = None  # looked up when first needed
        self.log_position = 0
        self.now_us = claimed.started_us

        self.deliveries = Deliveries()
        self.open: dict[int, Operation] = {}  # started, without an outcome
        self.timers = Timers(self.open)
        self.bodies: dict[int, AttemptRecord] = {}  # by step
        self.has_lone_body = False  # one that is recorded as alone in its worker
        self.deferred: deque[DoOperation] = deque()  # kept back while isolated
        self.delaying: set[int] = set()  # steps whose delay function runs
        self.waits = OpenWaits()
        self.events = EventBuffer(history.events)
        self.reading_events = False
        self.relations = Relations()

        self.decided: ControlFlow | None = None
        self.forced: Ending | None = None
        self.is_recovering = False
        self.is_resting = False  # claimed a moment before its time, it only waits for that
        self.ending: Ending | None = None
        self.cut_short = self.known_ending  # end so, when the handler has met what is recorded
        self.undoable: dict[StepIdentity, DoOperation] = {}  # called with a rollback
        self.is_going = False  # its worker wants to be rid of it
        self.wakes_us: int | None = None  # when it is due again, once it has been parked
        self.freezes_to = InstanceStatus.PAUSED
        self.main: asyncio.Task[Any] | None = None

    # Entering

    def begin(self) -> None:
        """Start the handler from the top."""
        refusal = changed_code.refusal(self)
        if refusal is not None:
            leaving.stick(self, refusal)
            return
        changed_code.note(self)
        step = WorkflowStep(self)
        try:
            args = (self.workflow.params.decode(self.claimed.params),) if self.workflow.takes_params else ()
        except Exception as error:  # noqa: BLE001 - the types are the user's: whatever validators raise
            leaving.stick(self, outcomes.params_refused(self.claimed.params, error))
            return
        self.main = self.loop.create_task(self.workflow.handler(step, *args))
        if self.claimed.deadline_us is not None and not self.claimed.ends_as:
            self.timers.add(self.claimed.deadline_us, DEADLINE)
        self.host.poke(self)

    # Turning

    def advance(self) -> None:
        """Do all that can be done now."""
        self.is_resting = False
        if self.phase is Phase.DRIVING:
            self._turn()
        elif self.undoing is not None and self.phase in (Phase.ROLLING_BACK, Phase.FREEZING):
            rollback.advance(self, self.undoing)
        # The bodies that a pause has left out do not run.
        if self.phase is Phase.FREEZING and self.bodies.keys() <= self.left_out.starts and not self.delaying:
            leaving.leave_frozen(self)
        elif self.ending is not None and self.phase is Phase.ENDING and not self.bodies:
            leaving.close_open(self)
            self.close(self.ending)

    def close(self, ending: Ending) -> None:
        """Everything is recorded but the end: write that, or begin the rollbacks that come before it."""
        if rollback.is_due(self, ending):
            rollback.call(self, ending)
        else:
            leaving.write_end(self, ending)

    def _turn(self) -> None:
        if self.cut_short is not None:
            self._cut_short(self.cut_short)
            return
        self._fire_timers()
        while self.phase is Phase.DRIVING:
            if self.loop.is_ready:
                self.host.drive(self)
            if self.phase is not Phase.DRIVING or self._has_ended():
                return
            if not (
                self._deliver_recorded()
                or self._start_fresh()
                or self._deliver_arrived()
                or self._give_turns()
            ):
                self._rest()
                return

    def _cut_short(self, ending: Ending) -> None:
        """End so, whatever the handler would do; but it meets what is recorded first: that tells how to undo it."""
        is_to_be_undone = rollback.is_due(self, ending)
        while is_to_be_undone and self.phase is Phase.DRIVING:
            if self.loop.is_ready:
                self.host.drive(self)
            if self.forced is not None or not self._deliver_recorded():
                break
        if self.phase is Phase.DRIVING:
            self.deliveries.fresh.clear()
            leaving.end(self, ending)

    def _has_ended(self) -> bool:
        if self.forced is not None:
            leaving.end(self, self.forced)
        elif self.decided is not None:
            leaving.end(self, outcomes.of_control_flow(self.decided, self.workflow))
        elif self.main is not None and self.main.done():
            leaving.end(self, outcomes.of_handler(self.main, self.workflow))
        else:
            return False
        return True

    def _deliver_recorded(self) -> bool:
        operation = self.deliveries.take_recorded()
        if operation is not None:
            self._deliver(operation)
        return operation is not None

    def _deliver_arrived(self) -> bool:
        operation = self.deliveries.take_arrived()
        if operation is not None:
            self._deliver(operation)
        return operation is not None

    def _give_turns(self) -> bool:
        operation = self.deliveries.take_turnless()
        if operation is not None:
            self._give_turn(operation)
        return operation is not None

    def _deliver(self, operation: Operation) -> None:
        record = operation.record
        # Another worker may have been a few milliseconds ahead: for the handler time does not go back.
        self.now_us = max(self.now_us, record.finished_us or 0)
        self.step_count.delivered(record.seq)
        for one in (operation, *operation.followers):
            if not one.done():
                self.hand_over(one)

    def hand_over(self, operation: Operation) -> None:
        """Give an operation the outcome that is recorded."""
        record = operation.record
        if record.status == StepStatus.COMPLETE:
            try:
                value = (
                    operation.decode(record.output or "null")
                    if operation.live is None
                    else operation.live.value
                )
            except Exception as error:  # noqa: BLE001 - the types are the user's
                leaving.stick(self, outcomes.output_refused(record, error))
                return
            operation.set_result(value)
        else:
            operation.set_exception(operation.recorded_error())

    def _start_fresh(self) -> bool:
        fresh = self.deliveries.fresh
        if not fresh:
            return False
        while fresh and self.phase is Phase.DRIVING:
            operation = fresh.popleft()
            if operation.is_wanted:
                self.start(operation)
        return True

    def start(self, operation: Operation) -> None:
        """Begin an operation, or go on with it."""
        record = operation.record
        self.number(record)
        self.open[record.seq] = operation
        operation.begin()

    def number(self, record: StepRecord) -> None:
        if not record.seq:
            self.history.last_seq += 1
            record.seq = self.history.last_seq
            record.started_us = self.host.now_us()

    def _rest(self) -> None:
        """Nothing to give to the handler: wait for a body, or for what it was claimed for, or park."""
        self.relations.look(self)
        coming = self.timers.next()
        if self.bodies or self.delaying or self.reading_events or self.relations.is_busy:
            self._arm()
        elif coming is not None and coming[0] <= self.claimed.due_us:
            self.is_resting = True
            self._arm()
        elif self.open:
            leaving.park(self)
        else:
            leaving.end(self, outcomes.deadlock())

    # Timers

    def wait_until(self, operation: Operation, when_us: int | None, *, is_new: bool = True) -> None:
        """Let the operation wait; when the time has come, `_fire_timers` sees to it."""
        record = operation.record
        record.wake_us = when_us
        if is_new:
            self.record(record)
        if when_us is None:
            return
        if when_us <= self.host.due_us():
            operation.fire()
        else:
            operation.arm(when_us)

    def _fire_timers(self) -> None:
        for seq in self.timers.due(self.host.due_us()):
            if seq == DEADLINE:
                timeout = WorkflowTimeoutError("timeout", self.workflow.timeout_or_zero)
                self._cut_short(outcomes.of_error(timeout))
                return
            self.open[seq].fire()

    def _arm(self) -> None:
        coming = self.timers.next()
        if coming is not None:
            self.host.call_at(self, coming[0])

    # Called by WorkflowStep

    def record_of(
        self, kind: StepKind, name: str, *, once: bool = False, also: Mapping[StepIdentity, StepRecord] = NONE
    ) -> StepRecord:
        """Fix the identity of a call, and return what is recorded under it, or a new record.

        `also` holds what was recorded under another identity than it has now.
        """
        once = once or self.workflow.step_identity == "name"
        identity = self.counter.take(kind, name, once=once)
        entered = self.deliveries.entered
        while once and identity in entered and entered[identity].is_given_up:
            identity = identity._replace(count=identity.count + 1)  # the handler gave that one up
        record = self.history.steps.get(identity) or also.get(identity)
        if record is None:
            record = StepRecord(0, *identity, is_recorded=False)
            self.history.steps[identity] = record
        return record

    def enter(self, operation: Operation) -> Coroutine[Any, Any, Any]:
        """Take in a call of the handler: replay its outcome, or start it when nothing recorded is left to replay."""
        self.deliveries.enter(operation)
        return operation  # type: ignore[return-value]  # the loop makes a coroutine of it where one is needed

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
    def is_decided(self) -> bool:
        """Tell whether the handler itself came to its end, and was not cut short."""
        has_returned = self.main is not None and self.main.done() and not self.main.cancelled()
        return self.forced is None and (self.decided is not None or has_returned)

    @property
    def known_ending(self) -> Ending | None:
        """Tell how it ends after its rollbacks, where these have begun."""
        if self.undoing is not None:
            return self.undoing.ending
        if not self.claimed.ends_as:
            return None
        return Ending(InstanceStatus(self.claimed.ends_as), error=self.claimed.error, rolls_back=True)

    def give_up_rollbacks(self, refused: Writes, error: Exception) -> None:
        if self.undoing is not None:
            rollback.give_up(self, self.undoing, refused, error)

    @property
    def is_driving(self) -> bool:
        return self.phase is Phase.DRIVING

    @property
    def is_freezing(self) -> bool:
        return self.phase is Phase.FREEZING

    @property
    def is_ending(self) -> bool:
        return self.phase is Phase.ENDING

    def say(self, level: str, message: str, fields: dict[str, JSON]) -> None:
        """Write a line of the handler's log, once over all replays."""
        self.log_position += 1
        if self.phase is Phase.DRIVING and self.log_position > self.history.log_lines:
            line = outcomes.log_line(level, message, fields, self.host.now_us())
            self.add_log(LogLine(*line, position=self.log_position))

    # Recording

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

    def conclude(self, operation: Operation, *, output: str | None = None, error: str | None = None) -> None:
        """Record the outcome of an operation and deliver it in its turn; an inner step's goes to its owner."""
        record = operation.record
        record.status = StepStatus.COMPLETE if error is None else StepStatus.ERRORED
        record.output, record.error = output, error
        record.wake_us = None
        record.finished_us = self.host.now_us()
        self.open.pop(record.seq, None)
        self.relations.open.pop(record.seq, None)
        self._give_turn(operation)

    def take_in(self, operation: Operation, *, output: str, finished_us: int) -> None:
        """Deliver the outcome that an atomic step has recorded by itself, if anybody still waits for it."""
        record = operation.record
        record.status, record.output, record.finished_us = StepStatus.COMPLETE, output, finished_us
        record.stands = True
        if self.open.pop(record.seq, None) is not None and not self.is_ending:
            self._give_turn(operation)

    def _give_turn(self, operation: Operation) -> None:
        """Put an outcome into the order of deliveries; an inner step's goes to its owner."""
        record = operation.record
        self.record(record)
        if operation.owner is None:
            self.history.last_delivery += 1
            record.delivery = self.history.last_delivery
            self.deliveries.arrived.append(operation)
        else:
            operation.owner.settled(operation)
        self.host.poke(self)

    def written(
        self, status: str, signals: int, ends_as: str = "", *, leave: Leave | None, has_left: bool
    ) -> None:
        """Take in the answer to a flush: what the row said when the writes, with this `leave`, were made.

        An answer that comes while the cycle leaves may belong to an earlier flush: the one that leaves is still on
        its way then, and finds out by itself what the row says. One that comes after the cycle has left says nothing:
        the next cycle of the instance may be under way.
        """
        if self.phase is Phase.LEFT:
            return
        if leave is None:
            self.on_signals(status, signals, ends_as)
        elif has_left and leave.status == InstanceStatus.RUNNING and self.ending is not None:
            rollback.begin(self, self.ending)
            self.on_signals(status, signals, ends_as)
            if self.is_going:
                leaving.freeze(self, InstanceStatus.QUEUED)
        else:
            leaving.answered(self, leave, status, signals, ends_as, has_left=has_left)

    # Signals

    def on_signals(self, status: str, signals: int, ends_as: str = "") -> None:
        """Somebody changed the row: an event came, a pause was asked for or withdrawn, or the end after rollbacks."""
        if signals <= self.signals or self.phase not in STEERED:
            return
        self.signals = signals
        self.events.is_stale = self.relations.is_stale = True
        if ends_as and self.known_ending is None:
            leaving.cut_short(self)
            return
        if status == InstanceStatus.WAITING_FOR_PAUSE:
            leaving.freeze(self, InstanceStatus.PAUSED)
            return
        if self.phase is Phase.FREEZING and not self.is_going:
            leaving.thaw(self)
        if self.phase is Phase.DRIVING:
            waits.match(self)
            if self.relations.open:
                self.host.poke(self)

    def read_events(self) -> None:
        """Read the next events that the open waits could take."""
        if not self.reading_events:
            self.reading_events = True
            self.events.ask(frozenset(self.waits.types))
            self.host.read_events(self)

    def on_events(self, page: Page, signals: int) -> None:
        """Take in the answer to `events.question`; `signals` is what the row said before it was asked."""
        if not self.reading_events:
            return  # answered already
        self.reading_events = False
        # One that came since was maybe too late for this answer; nothing else tells of it.
        self.events.take(page, is_stale=signals < self.signals)
        self.waits.know(self.events.types)
        if self.phase is Phase.DRIVING:
            waits.match(self)
            waits.expire_overdue(self)
            self.host.poke(self)
