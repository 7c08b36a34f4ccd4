"""How an instance leaves its worker: parked, paused, released, ended, or lost."""

from __future__ import annotations

from engine.replay.calls.call import Call
from engine.replay.calls.unawaited import never_awaited
from engine.replay.exit import endings
from engine.replay.exit.endings import Ending
from engine.replay.exit.left_out import LeftOut
from engine.replay.host import Phase
from engine.replay.records import outcomes
from engine.replay.records.history import AttemptRecord, LogLine
from engine.replay.records.log_lines import log_line, not_kept
from engine.replay.records.writes import Leave, Writes
from engine.replay.state import CycleState
from engine.values.errors import CodeChangedError, ControlFlow, NonDeterminismError
from engine.values.identity import TOP
from engine.values.states import AttemptStatus, InstanceStatus, RollbackState


class Exit:
    """What is decided about the end of a cycle, and the ways to come to it."""

    def __init__(self, cycle: CycleState) -> None:
        claimed = cycle.claimed
        self._cycle = cycle
        self.decided: ControlFlow | None = None  # by the handler, whatever it does then
        self.forced: Ending | None = None  # without asking the handler
        self.ending: Ending | None = None  # once the handler has ended
        # How it ends after its rollbacks, where these have begun.
        self.after_rollbacks: Ending | None = None
        if claimed.ends_as:
            self.after_rollbacks = Ending(
                InstanceStatus(claimed.ends_as), error=claimed.error, rolls_back=True
            )
        self.cut_short = self.after_rollbacks  # end so, when the handler has met what is recorded
        self.is_rolling_back = False  # in this cycle
        self.is_going = False  # its worker wants to be rid of it
        self.wakes_us: int | None = None  # when it is due again, once it has been parked
        self._quiesces_to = InstanceStatus.PAUSED
        self._is_recovering = False
        self._left_out = LeftOut(cycle)  # by a pause that may yet be withdrawn

    # Deciding

    def decide(self, flow: ControlFlow) -> ControlFlow:
        """End the instance so, whatever the handler does with the exception; return what to raise."""
        if self._cycle.loop.is_closed():
            return flow
        self.decided = self.decided or flow
        return self.decided

    def force(self, ending: Ending) -> None:
        """End the instance so, without asking the handler: it does not listen."""
        self.forced = self.forced or ending

    @property
    def is_decided(self) -> bool:
        """Tell whether the handler itself came to its end, and was not cut short."""
        main = self._cycle.main
        has_returned = main is not None and main.done() and not main.cancelled()
        return self.forced is None and (self.decided is not None or has_returned)

    def found(self) -> Ending | None:
        """Return how the handler has ended, if it has."""
        cycle = self._cycle
        if self.forced is not None:
            return self.forced
        if self.decided is not None:
            return endings.of_control_flow(self.decided, cycle.workflow)
        if cycle.main is not None and cycle.main.done():
            return endings.of_handler(cycle.main, cycle.workflow)
        return None

    # Leaving

    def leave(self, how: Leave) -> None:
        """Write how the instance leaves, with all that is still to be written."""
        cycle = self._cycle
        self._left_out.forget()
        cycle.phase = Phase.LEAVING
        cycle.writes.leave = how
        cycle.host.flush(cycle)

    def answered(self, how: Leave, ends_as: str = "", *, has_left: bool) -> bool:
        """Take in whether the instance has left; tell whether it goes on where it was.

        If it has not left, a signal came first, a pause was withdrawn, or it is to be terminated after its rollbacks.
        """
        cycle = self._cycle
        if has_left:
            cycle.phase = Phase.LEFT
            self.wakes_us = how.wake_us
            cycle.host.shut(cycle)
            cycle.host.left(cycle)
        elif self.is_rolling_back:
            cycle.phase = Phase.ROLLING_BACK
            return True
        elif ends_as:
            self.terminate()
        elif not cycle.has_handler:
            self.leave(Leave(InstanceStatus.QUEUED))  # the handler is gone: go on with a fresh replay
        else:
            cycle.phase = Phase.DRIVING
            return True
        return False

    def park(self) -> None:
        """Nothing runs: wait in the database, for the next deadline, an event or another instance's end."""
        cycle = self._cycle
        coming, step = cycle.timers.next(), cycle.timers.next_step()
        waits_first = next(iter(cycle.steps.open.values())) if step is None else step
        wake_us = None if coming is None else coming[0]
        self.leave(Leave(InstanceStatus.WAITING, waits_first.waiting_for, wake_us, signals=cycle.signals))

    # Pausing and draining

    def quiesce(self, to: InstanceStatus) -> None:
        """Stop driving the handler; leave when the running bodies have ended: paused, or given back as queued.

        A pause may be withdrawn until then, so the handler is kept as it stands.
        """
        cycle = self._cycle
        is_given_back = to is InstanceStatus.QUEUED
        self.is_going = self.is_going or is_given_back
        is_driven = cycle.phase in (Phase.DRIVING, Phase.ROLLING_BACK)
        if is_driven or (cycle.phase is Phase.QUIESCING and is_given_back):
            cycle.phase = Phase.QUIESCING
            self._quiesces_to = to
            if is_given_back:
                cycle.host.shut(cycle)
            cycle.host.poke(cycle)

    def leave_if_quiet(self) -> None:
        """Leave once the bodies have ended. Those that a pause has left out do not run."""
        cycle = self._cycle
        if cycle.steps.bodies.keys() <= self._left_out.starts and not cycle.steps.asking:
            cycle.close_left_behind()
            # What a pause left out is begun by a replay, also if the pause is over by then.
            self.leave(Leave(InstanceStatus.QUEUED if self._left_out else self._quiesces_to))

    def resume(self) -> None:
        """The instance does not leave, say because a pause was withdrawn while bodies ran: go on."""
        cycle = self._cycle
        cycle.phase = Phase.ROLLING_BACK if self.is_rolling_back else Phase.DRIVING
        self._left_out.write()
        cycle.start_deferred()
        cycle.host.poke(cycle)

    def keep_unstarted(self, writes: Writes, signals: int) -> None:
        """A pause, of which the row told with this number, has left out what began with these writes: keep it."""
        cycle = self._cycle
        self._left_out.keep(writes)
        is_driven_on = cycle.phase in (Phase.DRIVING, Phase.QUIESCING) or writes.leave is not None
        if cycle.loop.is_closed() or not is_driven_on:
            self._left_out.forget()
        elif cycle.is_driving and signals < cycle.signals:
            self._left_out.write()  # the pause is over by now, and no news any more
        else:
            self.quiesce(InstanceStatus.PAUSED)
            cycle.host.poke(cycle)  # maybe nothing runs now

    def release(self) -> None:
        """The grace of a draining worker is over: cancel the bodies, spend no attempt, leave."""
        self.quiesce(InstanceStatus.QUEUED)
        self._cancel_bodies()
        self._cycle.host.poke(self._cycle)

    def pause_with_reason(self, error: NonDeterminismError | CodeChangedError) -> None:
        """Pause: nothing runs and nothing is overwritten until code or operator changes."""
        self._stop()
        self._cancel_bodies()
        self._cycle.steps.forget_bodies()  # one that is being committed is, or is refused: the database says
        self._cycle.close_left_behind()
        self.leave(Leave(InstanceStatus.PAUSED, pause_reason=outcomes.error_json(error)))

    # Ending

    def end(self, ending: Ending) -> None:
        """The handler has ended: cancel what is open, wait for bodies to let go, then write the outcome."""
        cycle = self._cycle
        self._left_out.forget()
        cycle.phase = Phase.ENDING
        self.ending = ending
        cycle.host.shut(cycle)
        for call in cycle.deliveries.take_fresh():  # called, but never awaited for long enough to start
            if not call.done() and not ending.rolls_back:
                cycle.number(call.record)
        for _, attempt in self._last_first():
            cycle.host.cancel_body(cycle, attempt)
        cycle.host.poke(cycle)

    def terminate(self) -> None:
        """Somebody wants it terminated after its rollbacks. If it is given back anyway, the next worker does that."""
        cycle = self._cycle
        if not cycle.has_handler:
            if cycle.phase is Phase.LEAVING:
                self.end(endings.terminated())
            return
        self.cut_short = endings.terminated()
        cycle.phase = Phase.DRIVING
        cycle.host.poke(cycle)

    def close_if_ended(self) -> None:
        """Record what has no outcome as cancelled, and then the end, once the bodies have let go."""
        cycle = self._cycle
        if self.ending is not None and not cycle.steps.bodies:
            for record in cycle.history.steps.values():
                if record.seq and not record.is_final:
                    cycle.close_lost(record)
                    cycle.cancel_record(record)
            cycle.steps.close()
            self.close(self.ending)

    def close(self, ending: Ending) -> None:
        """Everything is recorded but the end: write that, or that the rollbacks begin, which come before it."""
        if self.rolls_back(ending):
            self.ending = ending
            status, state = InstanceStatus.RUNNING, RollbackState.RUNNING
            self.leave(Leave(status, error=ending.error, rollback=state, ends_as=ending.status))
        else:
            self._write_end(ending)

    def rolls_back(self, ending: Ending) -> bool:
        """Tell whether an instance that ends so has anything to undo."""
        if ending.rolls_back:
            return True
        cycle = self._cycle
        return ending.status == InstanceStatus.ERRORED and any(
            record.is_to_be_undone and (record.is_recorded or record.seq in cycle.writes.steps)
            for record in cycle.history.steps.values()
        )

    def _write_end(self, ending: Ending) -> None:
        cycle = self._cycle
        said = [not_kept(ending.dropped)] if ending.dropped else []
        if (
            ending.status is InstanceStatus.COMPLETE
        ):  # else what came between a call and its `await` has ended it
            said.append(never_awaited(cycle.deliveries.calls()))
        for message in filter(None, said):
            cycle.add_log(LogLine(*log_line("warning", message, {}, cycle.host.now_us())))
        self.leave(Leave(ending.status, output=ending.output, error=ending.error, unreached=self.unreached()))

    def roll_back(self, ending: Ending) -> None:
        """It is recorded that the rollbacks begin: nothing else is done any more."""
        cycle = self._cycle
        self.is_rolling_back, self.after_rollbacks = True, ending
        cycle.steps.forget_asking()  # whatever still asked was about a step
        cycle.phase = Phase.ROLLING_BACK
        cycle.host.poke(cycle)

    def write_rolled_back(self, ending: Ending, state: RollbackState) -> None:
        """Write the end after the rollbacks, and how these ended."""
        self.leave(
            Leave(
                ending.status,
                error=ending.error,
                unreached=self.unreached(),
                rollback=state,
                ends_as=ending.status,
            )
        )

    def unreached(self) -> tuple[int, ...]:
        """List what is recorded and was not called for any more: the code has changed. Inner steps go with theirs."""
        if not self.is_decided:
            return ()
        steps, entered = self._cycle.history.steps.items(), self._cycle.deliveries.entered
        return tuple(
            record.seq
            for identity, record in steps
            if record.seq and record.parent == TOP and identity not in entered
        )

    # Failing

    def abandon(self) -> None:
        """The lease is lost: stop everything, write nothing."""
        cycle = self._cycle
        if cycle.phase is Phase.LEFT:
            return
        cycle.phase = Phase.LEFT
        cycle.host.shut(cycle)
        for _, attempt in self._last_first():
            cycle.host.cancel_body(cycle, attempt)
        cycle.steps.forget_bodies()
        cycle.steps.forget_asking()
        cycle.steps.release()
        cycle.take_writes()
        self._left_out.drop()
        cycle.host.left(cycle)

    def begin_recovery(self, error: Exception) -> Writes | None:
        """Stop after a refusal and return what was refused; None if nothing can be written any more.

        Where that was refused, too, the instance is paused as it is.
        """
        cycle = self._cycle
        if cycle.phase is Phase.LEFT:
            return None  # the refusal came late: what it says is no concern of the next cycle of the instance
        refused = cycle.take_writes()
        if self._is_recovering:
            cycle.host.give_up(cycle, endings.given_up(error))
            self.abandon()
            return None
        self._is_recovering = True
        self._stop()
        self._cancel_bodies()
        for call in list(cycle.steps.bodies.values()):  # if committed after all, this is refused, too
            cycle.cancel_attempt(call)
        return refused

    def end_refused(self, refused: Writes, error: Exception) -> None:
        """Cancel what is open and what was refused, and end with the error."""
        cycle = self._cycle
        refused.attempts |= cycle.take_writes().attempts
        for record in cycle.history.steps.values():
            if (
                record.is_recorded
                and not record.stands
                and (not record.is_final or record.seq in refused.steps)
            ):
                cycle.close_lost(record)
                record.delivery = record.output = record.error = None
                cycle.cancel_record(record)
        cycle.writes.attempts |= self._without_outcomes(refused)
        self.close(self.after_rollbacks or endings.of_error(error))

    def _without_outcomes(self, refused: Writes) -> dict[tuple[int, int], AttemptRecord]:
        """Keep that attempts were made, where their step is recorded: what they said may be what is refused."""
        recorded = {record.seq for record in self._cycle.history.steps.values() if record.is_recorded}
        kept = {where: attempt for where, attempt in refused.attempts.items() if where[0] in recorded}
        for attempt in kept.values():
            attempt.error = None
            if attempt.status in (AttemptStatus.RUNNING, AttemptStatus.COMPLETE):
                self._cycle.finish(attempt, AttemptStatus.CANCELLED)
        return kept

    def _stop(self) -> None:
        self._cycle.phase = Phase.LEAVING
        self._cycle.host.shut(self._cycle)

    def _cancel_bodies(self) -> None:
        cycle = self._cycle
        self._left_out.forget()
        cycle.steps.forget_asking()  # whoever takes the instance next asks again
        for call, attempt in self._last_first():  # what is being committed cannot be cancelled
            if cycle.host.cancel_body(cycle, attempt):
                cycle.cancel_attempt(call)
        cycle.steps.release()

    def _last_first(self) -> list[tuple[Call, AttemptRecord]]:
        """List the bodies: those that still wait for a thread before those whose end would give them one."""
        bodies = reversed(self._cycle.steps.bodies.values())
        return [(call, call.attempt) for call in bodies if call.attempt is not None]
