"""One stay of an instance in a worker: replay what is recorded, continue from there, leave.

The main path is `advance`. It runs the handler until that waits, then delivers the next recorded outcome. When none is
left, it starts what the handler called for the first time, or delivers the next live outcome. When there is nothing to
deliver and no body runs, it parks. Every outcome is recorded with a delivery number. A replay delivers in that order,
so the handler takes the same turns each time.

Outcomes reach the handler before they are committed: handler code has no effects, and the commit that follows also
contains the start of what the handler called next. A body starts only after that commit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from engine.replay import changed_code
from engine.replay.attempts.attempt import AttemptedOperation
from engine.replay.calls.call import Call
from engine.replay.exit import endings
from engine.replay.exit.endings import Ending
from engine.replay.exit.exit import Exit
from engine.replay.exit.recovery import Recovery
from engine.replay.host import Claimed, Host, Phase
from engine.replay.records import outcomes
from engine.replay.records.history import History, Page, StepRecord
from engine.replay.records.other_instances import AwaitedState
from engine.replay.records.writes import Leave
from engine.replay.rollback.rollbacks import Rollbacks
from engine.replay.state import CycleState
from engine.replay.step.workflow_step import WorkflowStep
from engine.replay.waiting.timers import DEADLINE
from engine.replay.waiting.wake_ups import WakeUp
from engine.values.errors import CodeChangedError, NonDeterminismError, WorkflowTimeoutError
from engine.values.states import InstanceStatus

if TYPE_CHECKING:
    from engine.declare.registry import Workflow

DRIVING = Phase.DRIVING  # read several times a step, and looking up a member of an Enum is slow
STEERED = (DRIVING, Phase.QUIESCING, Phase.ROLLING_BACK)


class Cycle(CycleState):
    """Drives the handler, then the rollbacks."""

    def __init__(
        self,
        host: Host[Cycle, AttemptedOperation],
        workflow: Workflow[Any, Any],
        claimed: Claimed,
        history: History,
    ) -> None:
        super().__init__(host, workflow, claimed, history)
        self.exit = Exit(self)
        self.recovery = Recovery(self, self.exit)
        self.rollbacks: Rollbacks | None = None  # once they have begun

    # Entering

    def begin(self) -> None:
        """Start the handler from the top."""
        refusal = changed_code.refusal(self)
        if refusal is not None:
            self.pause_with_reason(refusal)
            return
        changed_code.note(self)
        step = WorkflowStep(self, self.exit.decision)
        try:
            args = (self.workflow.params.decode(self.claimed.params),) if self.workflow.takes_params else ()
        except Exception as error:  # noqa: BLE001 - the types are the user's: whatever validators raise
            self.pause_with_reason(outcomes.params_refused(self.claimed.params, error))
            return
        self.main = self.loop.create_task(self.workflow.handler(step, *args))
        if self.claimed.deadline_us is not None and not self.claimed.ends_as:
            self.timers.add(self.claimed.deadline_us, DEADLINE)
        self.host.poke(self)

    # Turning

    def advance(self) -> None:
        """Do all that can be done now."""
        self.is_resting = False
        if self.phase is DRIVING:
            self._turn()
        elif self.rollbacks is not None and self.phase in (Phase.ROLLING_BACK, Phase.QUIESCING):
            self.rollbacks.advance()
        if self.phase is Phase.QUIESCING:
            self.exit.leave_if_quiet()
        elif self.phase is Phase.ENDING:
            self.exit.close_if_ended()

    def _turn(self) -> None:
        if self.exit.decision.cut_short is not None:
            self._cut_short(self.exit.decision.cut_short)
            return
        self._fire_timers()
        may_have_ended = True
        while self.phase is DRIVING:
            if self.loop.is_ready:
                self.host.drive(self)
                may_have_ended = True
            if self.phase is not DRIVING or (may_have_ended and self._has_ended()):
                return
            may_have_ended = False
            if not (
                self._deliver_recorded()
                or self._halt()
                or self._start_fresh()
                or self._deliver_arrived()
                or self._number_deliveries()
            ):
                self._rest()
                return

    def _cut_short(self, ending: Ending) -> None:
        """End this way, whatever the handler would do; replay first what is recorded, if there is anything to undo."""
        is_to_be_undone = self.exit.decision.rolls_back(ending)
        while is_to_be_undone and self.phase is DRIVING:
            if self.loop.is_ready:
                self.host.drive(self)
            if self.exit.decision.forced is not None or not self._deliver_recorded():
                break
        if self.phase is DRIVING:
            self.deliveries.take_fresh()
            self.exit.end(ending)

    def _has_ended(self) -> bool:
        ending = self.exit.decision.found()
        if ending is not None:
            self.exit.end(ending)
        return ending is not None

    def _deliver_recorded(self) -> bool:
        call = self.deliveries.take_recorded()
        if call is not None:
            self._deliver_to_handler(call)
        return call is not None

    def _halt(self) -> bool:
        """Start nothing new while a person has to decide what follows the used-up attempts of a step."""
        if self.exhausted:
            self.exit.quiesce(InstanceStatus.PAUSED)
        return bool(self.exhausted)

    def _start_fresh(self) -> bool:
        fresh = self.deliveries.fresh
        if not fresh:
            return False
        while fresh and self.phase is DRIVING:
            call = fresh.popleft()
            if call.is_wanted:
                self.start(call)
        return True

    def _deliver_arrived(self) -> bool:
        call = self.deliveries.take_arrived()
        if call is not None:
            self._deliver_to_handler(call)
        return call is not None

    def _number_deliveries(self) -> bool:
        call = self.deliveries.take_unnumbered()
        if call is not None:
            self.number_delivery(call)
        return call is not None

    def _deliver_to_handler(self, call: Call) -> None:
        record = call.record
        # Another worker may have been a few milliseconds ahead. For the handler, time never goes backwards.
        self.now_us = max(self.now_us, record.finished_us or 0)
        self.step_count.delivered(record.seq)
        self.deliver(call)

    def _rest(self) -> None:
        """Wait for a body or for the time that it was claimed for, or park: nothing can be delivered."""
        if self.relations.is_to_ask:
            self.relations.ask(self.host.due_us())
            self.host.read_relations(self)
        self.ask_for_wake_ups()
        steps, coming = self.steps, self.timers.next()
        if (
            steps.bodies
            or steps.asking
            or self.events.is_reading
            or self.relations.is_busy
            or self.wake_ups.is_asking
        ):
            if coming is not None:
                self.host.call_at(self, coming[0])
        elif coming is not None and coming[0] <= self.claimed.due_us:
            self.rest_until(coming[0])
        elif steps.open:
            self.exit.park()
        else:
            self.exit.end(endings.deadlock())

    def _fire_timers(self) -> None:
        for seq in self.timers.due(self.host.due_us()):
            if seq == DEADLINE:
                timeout = WorkflowTimeoutError("timeout", self.workflow.timeout_or_zero)
                self._cut_short(endings.of_error(timeout))
                return
            self.steps.open[seq].fire()

    # Leaving

    def pause_with_reason(self, error: NonDeterminismError | CodeChangedError) -> None:
        self.exit.pause_with_reason(error)

    def halt(self, exhausted: StepRecord) -> None:
        self.exhausted[exhausted.seq] = exhausted
        self.exit.quiesce(InstanceStatus.PAUSED)

    def recover(self, error: Exception) -> None:
        """End with an error of the engine, or with a refusal of the database; record nothing else."""
        refused = self.recovery.begin(error)
        if refused is not None and self.rollbacks is not None:
            self.rollbacks.give_up(refused, error)
        elif refused is not None:
            self.recovery.end(refused, error)

    # Answers

    def written(
        self, status: str, signals: int, ends_as: str = "", *, leave: Leave | None, has_left: bool
    ) -> None:
        """Handle the answer to a flush: what the row said when these writes, with this `leave`, were made.

        While the cycle leaves, an answer may belong to an earlier flush. The flush that leaves is then still under way
        and brings its own answer. An answer after the cycle has left is ignored: the next cycle of the instance may
        have begun.
        """
        if self.phase is Phase.LEFT:
            return
        ending = self.exit.ending
        if leave is None:
            self.on_signals(status, signals, ends_as)
        elif has_left and leave.status == InstanceStatus.RUNNING and ending is not None:
            self.rollbacks = Rollbacks(self, self.exit, ending)
            self.exit.roll_back(ending)
            self.on_signals(status, signals, ends_as)
            if self.exit.is_going:
                self.exit.quiesce(InstanceStatus.QUEUED)
        elif self.exit.answered(leave, ends_as, has_left=has_left):
            self.on_signals(status, signals)
            if self.phase in (DRIVING, Phase.ROLLING_BACK):
                self.exit.resume()

    def on_signals(self, status: str, signals: int, ends_as: str = "") -> None:
        """Handle a change of the row: an event, a pause requested or withdrawn, or a requested end after rollbacks."""
        if signals <= self.signals or self.phase not in STEERED:
            return
        self.signals = signals
        self.events.is_stale = True
        self.relations.expire()
        self.wake_ups.expire()
        self.ask_for_wake_ups()
        if ends_as and self.exit.decision.after_rollbacks is None:
            self.exit.terminate()
            return
        self.exit.is_requested = status == InstanceStatus.WAITING_FOR_PAUSE
        if self.exit.is_requested:
            self.exit.quiesce(InstanceStatus.PAUSED)
            return
        if self.phase is Phase.QUIESCING and not (self.exit.is_going or self.exhausted):
            self.exit.resume()
        if self.phase is DRIVING:
            self.matching.offer_all()
            if self.relations:
                self.host.poke(self)

    def on_events(self, page: Page, signals: int) -> None:
        """Handle the answer to `events.question`; `signals` is what the row said before the question."""
        if not self.events.is_reading:
            return  # answered already
        # An event since then may have missed this answer, and nothing else announces it.
        self.events.take(page, is_stale=signals < self.signals)
        self.waits.know(self.events.types)
        if self.phase is DRIVING:
            self.matching.offer_all()
            self.matching.expire_overdue(self.host.due_us())
            self.host.poke(self)

    def on_relations(self, found: Iterable[AwaitedState]) -> None:
        """Handle the answer to `relations.question`."""
        if self.phase is not DRIVING:
            self.relations.drop_answer()
            return
        self.relations.answer(found)
        self.host.poke(self)

    def on_wake_ups(self, found: Iterable[WakeUp]) -> None:
        """Handle the answer to `wake_ups.question`: continue at once what a person has woken."""
        for record, call in self.wake_ups.answer(found):
            if call is not None and self.phase in STEERED:
                call.hasten(record.wake_us or 0)
        if self.phase in STEERED:
            self.ask_for_wake_ups()
            self.host.poke(self)
