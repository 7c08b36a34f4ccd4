"""How an instance leaves its worker: parked, paused, released, ended, or lost."""

from __future__ import annotations

from dataclasses import replace

from engine.replay.calls.call import Call
from engine.replay.calls.unawaited import never_awaited
from engine.replay.exit import endings, exhausted
from engine.replay.exit.endings import Decision, Ending
from engine.replay.exit.left_out import LeftOut
from engine.replay.host import Phase
from engine.replay.records import outcomes
from engine.replay.records.history import AttemptRecord, LogLine
from engine.replay.records.log_lines import log_line, not_kept
from engine.replay.records.writes import Leave, Writes
from engine.replay.state import CycleState
from engine.values.errors import CodeChangedError, NonDeterminismError
from engine.values.identity import TOP
from engine.values.states import InstanceStatus, RollbackState


class Exit:
    """The ways in which a cycle ends. `decision` says how the handler does."""

    def __init__(self, cycle: CycleState) -> None:
        self._cycle = cycle
        self.decision = Decision(cycle)
        self.ending: Ending | None = None  # once the handler has ended
        self.is_rolling_back = False  # in this cycle
        self.is_going = False  # it leaves as queued: its worker drains, or another one takes it on
        self.is_requested = False  # a person has asked for a pause
        self.wakes_us: int | None = None  # when it is due again, once it has been parked
        self._quiesces_to = InstanceStatus.PAUSED
        self._left_out = LeftOut(cycle)  # by a pause that may still be withdrawn

    # Leaving

    def leave(self, how: Leave) -> None:
        """Write how the instance leaves, with all that is still to be written."""
        cycle = self._cycle
        self._left_out.forget()
        cycle.phase = Phase.LEAVING
        cycle.writes.leave = how if how.failed else replace(how, fingerprint=cycle.failures.latest)
        cycle.host.flush(cycle)

    def answered(self, how: Leave, ends_as: str = "", *, has_left: bool) -> bool:
        """Handle the answer to a leave; return whether the cycle continues where it was.

        If the instance has not left, a signal came first, a pause was withdrawn, or it is to be terminated after its
        rollbacks.
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
        elif cycle.exhausted:  # it pauses in any case: the next attempt to leave knows of the signal
            cycle.phase = Phase.QUIESCING
            cycle.host.poke(cycle)
            return True
        else:
            cycle.phase = Phase.DRIVING
            return True
        return False

    def park(self) -> None:
        """Wait in the database for the next deadline, an event, or the end of another instance."""
        cycle = self._cycle
        coming, step = cycle.timers.next(), cycle.timers.next_step()
        waits_first = next(iter(cycle.steps.open.values())) if step is None else step
        wake_us = None if coming is None else coming[0]
        self.leave(Leave(InstanceStatus.WAITING, waits_first.waiting_for, wake_us, signals=cycle.signals))

    # Pausing and draining

    def quiesce(self, to: InstanceStatus) -> None:
        """Stop driving the handler; when the running bodies have ended, leave as paused or queued.

        A pause may be withdrawn until then, so the handler is kept as it is.
        """
        cycle = self._cycle
        is_queued = to is InstanceStatus.QUEUED
        self.is_going = self.is_going or is_queued
        is_driven = cycle.phase in (Phase.DRIVING, Phase.ROLLING_BACK)
        if is_driven or (cycle.phase is Phase.QUIESCING and is_queued):
            cycle.phase = Phase.QUIESCING
            self._quiesces_to = to
            if is_queued:
                cycle.host.shut(cycle)
            cycle.host.poke(cycle)

    def leave_if_quiet(self) -> None:
        """Leave once the bodies have ended. Those that a pause left out do not run."""
        cycle = self._cycle
        if cycle.steps.bodies.keys() <= self._left_out.starts and not cycle.steps.asking:
            cycle.close_left_behind()
            if cycle.exhausted:
                self.leave(exhausted.leave(cycle, is_requested=self.is_requested))
                return
            # A replay begins what a pause left out, also if the pause is over by then.
            self.leave(Leave(InstanceStatus.QUEUED if self._left_out else self._quiesces_to))

    def resume(self) -> None:
        """Continue an instance that does not leave, for example because a pause was withdrawn while bodies ran."""
        cycle = self._cycle
        cycle.phase = Phase.ROLLING_BACK if self.is_rolling_back else Phase.DRIVING
        self._left_out.write()
        cycle.start_deferred()
        cycle.host.poke(cycle)

    def keep_unstarted(self, writes: Writes, signals: int) -> None:
        """Keep what began with these writes and was left out by a pause. `signals` is what the row then said."""
        cycle = self._cycle
        self._left_out.keep(writes)
        is_driven_on = cycle.phase in (Phase.DRIVING, Phase.QUIESCING) or writes.leave is not None
        if cycle.loop.is_closed() or not is_driven_on:
            self._left_out.forget()
        elif cycle.is_driving and signals < cycle.signals:
            self._left_out.write()  # the pause was withdrawn in the meantime
        else:
            self.quiesce(InstanceStatus.PAUSED)
            cycle.host.poke(cycle)  # perhaps nothing runs now

    def release(self) -> None:
        """Cancel the bodies without spending an attempt, and leave: the grace period of a drain is over."""
        self.quiesce(InstanceStatus.QUEUED)
        self._cancel_bodies()
        self._cycle.host.poke(self._cycle)

    def pause_with_reason(self, error: NonDeterminismError | CodeChangedError) -> None:
        """Pause with an error: nothing runs or is overwritten until the code changes or an operator acts."""
        self.stop()
        self._cycle.steps.forget_bodies()  # whether one is being committed, the database decides
        self._cycle.close_left_behind()
        self.leave(Leave(InstanceStatus.PAUSED, pause_reason=outcomes.error_json(error)))

    # Ending

    def end(self, ending: Ending) -> None:
        """End the handler: cancel what is open, wait until bodies have stopped, then write the outcome."""
        cycle = self._cycle
        self._left_out.forget()
        cycle.phase = Phase.ENDING
        cycle.exhausted.clear()  # there is nothing left to decide
        self.ending = ending
        cycle.host.shut(cycle)
        for call in cycle.deliveries.take_fresh():  # called, but never awaited long enough to start
            if not call.done() and not ending.rolls_back:
                cycle.number(call.record)
        for _, attempt in self._last_first():
            cycle.host.cancel_body(cycle, attempt)
        cycle.host.poke(cycle)

    def terminate(self) -> None:
        """Terminate the instance after its rollbacks. If it leaves as queued, the next worker does that."""
        cycle = self._cycle
        if not cycle.has_handler:
            if cycle.phase is Phase.LEAVING:
                self.end(endings.terminated())
            return
        self.decision.cut_short = endings.terminated()
        cycle.phase = Phase.DRIVING
        cycle.host.poke(cycle)

    def close_if_ended(self) -> None:
        """Once the bodies have stopped, record open steps as cancelled, then the end."""
        cycle = self._cycle
        if self.ending is not None and not cycle.steps.bodies:
            for record in cycle.history.steps.values():
                if record.seq and not record.is_final:
                    cycle.close_lost(record)
                    cycle.cancel_record(record)
            cycle.steps.close()
            self.close(self.ending)

    def close(self, ending: Ending) -> None:
        """Write the end, or, if rollbacks come first, that they begin. Everything else is recorded."""
        cycle = self._cycle
        if self.decision.rolls_back(ending):
            self.ending = ending
            status, state = InstanceStatus.RUNNING, RollbackState.RUNNING
            failed = cycle.failures.of_end(ending.origin)
            self.leave(
                Leave(status, error=ending.error, rollback=state, ends_as=ending.status, failed=failed)
            )
        else:
            self._write_end(ending)

    def _write_end(self, ending: Ending) -> None:
        cycle = self._cycle
        said = [not_kept(ending.dropped)] if ending.dropped else []
        # Otherwise an error between a call and its `await` may have ended the handler.
        if ending.status is InstanceStatus.COMPLETE:
            said.append(never_awaited(cycle.deliveries.calls()))
        for message in filter(None, said):
            cycle.add_log(LogLine(*log_line("warning", message, {}, cycle.host.now_us())))
        failed, unreached = cycle.failures.of_end(ending.origin), self.unreached()
        self.leave(
            Leave(ending.status, output=ending.output, error=ending.error, unreached=unreached, failed=failed)
        )

    def roll_back(self, ending: Ending) -> None:
        """Begin the rollbacks, once it is recorded that they begin."""
        cycle = self._cycle
        self.is_rolling_back, self.decision.after_rollbacks = True, ending
        cycle.failures.latest = None  # that of the end is recorded
        cycle.steps.forget_asking()  # what was still asked concerned a step
        cycle.phase = Phase.ROLLING_BACK
        cycle.host.poke(cycle)

    def write_rolled_back(self, ending: Ending, state: RollbackState) -> None:
        """Write the end of the instance after its rollbacks, and how these ended."""
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
        """List the recorded top-level steps that the handler no longer calls, because its code has changed."""
        if not self.decision.is_by_handler:
            return ()
        steps, entered = self._cycle.history.steps.items(), self._cycle.deliveries.entered
        return tuple(
            record.seq
            for identity, record in steps
            if record.seq and record.parent == TOP and identity not in entered
        )

    # Stopping

    def stop(self) -> None:
        """Stop the handler and the bodies; what is being committed cannot be cancelled."""
        self._cycle.phase = Phase.LEAVING
        self._cycle.host.shut(self._cycle)
        self._cancel_bodies()

    def abandon(self) -> None:
        """Stop everything and write nothing: the lease is lost."""
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

    def _cancel_bodies(self) -> None:
        cycle = self._cycle
        self._left_out.forget()
        cycle.steps.forget_asking()  # the next worker asks again
        for call, attempt in self._last_first():  # one that is being committed refuses
            if cycle.host.cancel_body(cycle, attempt):
                cycle.cancel_attempt(call)
        cycle.steps.release()

    def _last_first(self) -> list[tuple[Call, AttemptRecord]]:
        """List the bodies, the newest first: one that waits for a thread must not get that of one cancelled before."""
        bodies = reversed(self._cycle.steps.bodies.values())
        return [(call, call.attempt) for call in bodies if call.attempt is not None]
