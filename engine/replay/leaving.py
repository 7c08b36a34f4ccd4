"""How an instance leaves its worker: parked, paused, given back, ended, or lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import CodeChangedError, NonDeterminismError
from engine.identity import TOP
from engine.replay import attempts, cancelling, outcomes
from engine.replay.history import AttemptRecord, LogLine
from engine.replay.host import Phase
from engine.replay.outcomes import Ending
from engine.replay.unawaited import never_awaited
from engine.replay.writes import Leave, Writes
from engine.states import AttemptStatus, InstanceStatus

if TYPE_CHECKING:
    from engine.replay.cycle import Cycle


def leave(cycle: Cycle, how: Leave) -> None:
    """Write how the instance leaves, with all that is still to be written."""
    _forget_left_out(cycle)
    cycle.phase = Phase.LEAVING
    cycle.writes.leave = how
    cycle.host.flush(cycle)


def answered(
    cycle: Cycle, how: Leave, status: str, signals: int, ends_as: str = "", *, has_left: bool
) -> None:
    """Take in whether the instance has left.

    If not, a signal came first, a pause was withdrawn, or it is to be terminated after its rollbacks.
    """
    if has_left:
        cycle.phase = Phase.LEFT
        cycle.wakes_us = how.wake_us
        cycle.host.shut(cycle)
        cycle.host.left(cycle)
    elif cycle.undoing is not None:
        cycle.phase = Phase.ROLLING_BACK
        cycle.on_signals(status, signals)
        cycle.host.poke(cycle)
    elif ends_as:
        cut_short(cycle)
    elif cycle.main is None or cycle.loop.is_closed():
        leave(cycle, Leave(InstanceStatus.QUEUED))  # the handler is gone: go on with a fresh replay
    else:
        cycle.phase = Phase.DRIVING
        cycle.on_signals(status, signals)
        if cycle.is_driving:
            thaw(cycle)


def park(cycle: Cycle) -> None:
    """Nothing runs: wait in the database, for the next deadline, an event or another instance's end."""
    coming, step = cycle.timers.next(), cycle.timers.next_step()
    waits_first = next(iter(cycle.open.values())) if step is None else step
    wake_us = None if coming is None else coming[0]
    leave(cycle, Leave(InstanceStatus.WAITING, waits_first.waiting_for, wake_us, signals=cycle.signals))


def freeze(cycle: Cycle, to: InstanceStatus) -> None:
    """Stop driving the handler; leave when the running bodies have ended: paused, or given back as queued.

    A pause may be withdrawn until then, so the handler is kept as it stands.
    """
    is_given_back = to is InstanceStatus.QUEUED
    cycle.is_going = cycle.is_going or is_given_back
    is_driven = cycle.phase in (Phase.DRIVING, Phase.ROLLING_BACK)
    if is_driven or (cycle.phase is Phase.FREEZING and is_given_back):
        cycle.phase = Phase.FREEZING
        cycle.freezes_to = to
        if is_given_back:
            cycle.host.shut(cycle)
        cycle.host.poke(cycle)


def leave_frozen(cycle: Cycle) -> None:
    """The bodies have ended. What a pause left out is begun by a replay, also if the pause is over by then."""
    attempts.close_left_behind(cycle)
    leave(cycle, Leave(InstanceStatus.QUEUED if cycle.left_out else cycle.freezes_to))


def thaw(cycle: Cycle) -> None:
    """The instance does not leave, say because a pause was withdrawn while bodies ran: go on."""
    cycle.phase = Phase.DRIVING if cycle.undoing is None else Phase.ROLLING_BACK
    _write_left_out(cycle)
    attempts.start_deferred(cycle)
    cycle.host.poke(cycle)


def hold_back(cycle: Cycle, writes: Writes, signals: int) -> None:
    """A pause, of which the row told with this number, has left out what began with these writes: keep it for later."""
    cycle.left_out.absorb(writes.begun())
    is_driven_on = cycle.phase in (Phase.DRIVING, Phase.FREEZING) or writes.leave is not None
    if cycle.loop.is_closed() or not is_driven_on:
        _forget_left_out(cycle)
    elif cycle.is_driving and signals < cycle.signals:
        _write_left_out(cycle)  # the pause is over by now, and no news any more
    else:
        freeze(cycle, InstanceStatus.PAUSED)
        cycle.host.poke(cycle)  # maybe nothing runs now


def _write_left_out(cycle: Cycle) -> None:
    writes, cycle.left_out = cycle.left_out, Writes()
    if writes:
        writes.absorb(cycle.writes)
        cycle.writes = writes
        cycle.host.flush(cycle)


def _forget_left_out(cycle: Cycle) -> None:
    """Whoever takes the instance next begins what was left out: here it never began.

    But for the losses that it was to follow: those are recorded.
    """
    writes, cycle.left_out = cycle.left_out, Writes()
    for then in writes.then:
        then(True)
    for (seq, _), attempt in writes.attempts.items():
        if attempt.status == AttemptStatus.LOST:
            attempts.wait_for_next(cycle, writes.steps[seq])
            cycle.record(writes.steps[seq], attempt)


def give_back(cycle: Cycle) -> None:
    """The grace of a draining worker is over: cancel the bodies, spend no attempt, leave."""
    freeze(cycle, InstanceStatus.QUEUED)
    _cancel_bodies(cycle)
    cycle.host.poke(cycle)


def stick(cycle: Cycle, error: NonDeterminismError | CodeChangedError) -> None:
    """Pause with a reason: nothing runs and nothing is overwritten until code or operator changes."""
    _stop(cycle)
    _cancel_bodies(cycle)
    cycle.bodies.clear()  # one that is being committed is, or is refused: the database says
    attempts.close_left_behind(cycle)
    reason = outcomes.with_original(outcomes.error_json(error), cycle.known_ending)
    leave(cycle, Leave(InstanceStatus.PAUSED, error=reason, insists=True))


def end(cycle: Cycle, ending: Ending) -> None:
    """The handler has ended: cancel what is open, wait for bodies to let go, then write the outcome."""
    _forget_left_out(cycle)
    cycle.phase = Phase.ENDING
    cycle.ending = ending
    cycle.host.shut(cycle)
    for operation in cycle.deliveries.fresh:  # called, but never awaited for long enough to start
        if not operation.done() and not ending.rolls_back:
            cycle.number(operation.record)
    cycle.deliveries.fresh.clear()
    cycle.deferred.clear()
    for _, attempt in _last_first(cycle):
        cycle.host.cancel_body(cycle, attempt)
    cycle.host.poke(cycle)


def cut_short(cycle: Cycle) -> None:
    """Somebody wants it terminated after its rollbacks. What is given back anyway, the next worker sees to."""
    if cycle.main is None or cycle.loop.is_closed():
        if cycle.phase is Phase.LEAVING:
            end(cycle, outcomes.terminated())
        return
    cycle.phase = Phase.DRIVING
    cycle.cut_short = outcomes.terminated()
    cycle.host.poke(cycle)


def close_open(cycle: Cycle) -> None:
    """Record what has no outcome as cancelled."""
    for record in cycle.history.steps.values():
        if record.seq and not record.is_final:
            attempts.close_lost(cycle, record)
            cancelling.cancel_record(cycle, record)
    cycle.open.clear()


def write_end(cycle: Cycle, ending: Ending) -> None:
    said = [outcomes.not_kept(ending.dropped)] if ending.dropped else []
    if ending.status is InstanceStatus.COMPLETE:  # else what came between a call and its `await` has ended it
        said.append(never_awaited(cycle.deliveries.calls()))
    for message in filter(None, said):
        cycle.add_log(LogLine(*outcomes.log_line("warning", message, {}, cycle.host.now_us())))
    leave(cycle, Leave(ending.status, output=ending.output, error=ending.error, unreached=unreached(cycle)))


def unreached(cycle: Cycle) -> tuple[int, ...]:
    """List what is recorded and was not called for any more: the code has changed since. Inner steps go with theirs."""
    if not cycle.is_decided:
        return ()
    steps = cycle.history.steps.items()
    return tuple(
        record.seq
        for identity, record in steps
        if record.seq and record.parent == TOP and identity not in cycle.deliveries.entered
    )


def abandon(cycle: Cycle) -> None:
    """The lease is lost: stop everything, write nothing."""
    if cycle.phase is Phase.LEFT:
        return
    cycle.phase = Phase.LEFT
    cycle.host.shut(cycle)
    for _, attempt in _last_first(cycle):
        cycle.host.cancel_body(cycle, attempt)
    cycle.bodies.clear()
    cycle.delaying.clear()
    _let_go(cycle)
    cycle.writes, cycle.left_out = Writes(), Writes()
    cycle.host.left(cycle)


def recover(cycle: Cycle, error: Exception) -> None:
    """The database refuses what this cycle writes, or the engine failed: end with that error, and only that.

    Refused that too, the instance is paused as it is.
    """
    if cycle.phase is Phase.LEFT:
        return  # the refusal came late: what it says is no concern of the next cycle of the instance
    refused, cycle.writes = cycle.writes, Writes()
    if cycle.is_recovering:
        cycle.host.give_up(cycle, outcomes.with_original(outcomes.given_up(error), cycle.known_ending))
        abandon(cycle)
        return
    cycle.is_recovering = True
    _stop(cycle)
    _cancel_bodies(cycle)
    for seq, attempt in list(cycle.bodies.items()):  # if these were committed after all, this is refused, too
        attempts.cancel(cycle, seq, attempt)
    if cycle.undoing is not None:
        cycle.give_up_rollbacks(refused, error)
        return
    refused.attempts |= cycle.writes.attempts
    cycle.writes = Writes()
    for record in cycle.history.steps.values():
        if record.is_recorded and not record.stands and (not record.is_final or record.seq in refused.steps):
            attempts.close_lost(cycle, record)
            record.delivery = record.output = record.error = None
            cancelling.cancel_record(cycle, record)
    cycle.writes.attempts |= _without_outcomes(cycle, refused)
    cycle.close(cycle.known_ending or outcomes.of_error(error))


def _without_outcomes(cycle: Cycle, refused: Writes) -> dict[tuple[int, int], AttemptRecord]:
    """Keep of the attempts that they were made, where their step is recorded: what they said may be what is refused."""
    recorded = {record.seq for record in cycle.history.steps.values() if record.is_recorded}
    kept = {where: attempt for where, attempt in refused.attempts.items() if where[0] in recorded}
    for attempt in kept.values():
        attempt.error = None
        if attempt.status in (AttemptStatus.RUNNING, AttemptStatus.COMPLETE):
            attempts.finish(cycle, attempt, AttemptStatus.CANCELLED)
    return kept


def _stop(cycle: Cycle) -> None:
    cycle.phase = Phase.LEAVING
    cycle.host.shut(cycle)


def _cancel_bodies(cycle: Cycle) -> None:
    _forget_left_out(cycle)
    cycle.delaying.clear()  # whoever takes the instance next asks again
    for seq, attempt in _last_first(cycle):  # what is being committed cannot be cancelled
        if cycle.host.cancel_body(cycle, attempt):
            attempts.cancel(cycle, seq, attempt)
    _let_go(cycle)


def _last_first(cycle: Cycle) -> list[tuple[int, AttemptRecord]]:
    """List the bodies: those that still wait for a thread before those whose end would give them one."""
    return list(cycle.bodies.items())[::-1]


def _let_go(cycle: Cycle) -> None:
    """Whoever awaits a step of a body waits in vain."""
    for operation in cycle.open.values():
        operation.let_go()
