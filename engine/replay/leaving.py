"""How an instance leaves its worker: parked, paused, given back, ended, or lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import NonDeterminismError
from engine.replay import attempts, outcomes
from engine.replay.history import AttemptRecord
from engine.replay.host import Phase
from engine.replay.operation import Operation
from engine.replay.outcomes import Ending
from engine.replay.writes import Leave, Writes
from engine.states import AttemptStatus, InstanceStatus, StepKind, WaitingFor

if TYPE_CHECKING:
    from engine.replay.cycle import Cycle


def leave(cycle: Cycle, how: Leave) -> None:
    """Write how the instance leaves, with all that is still to be written."""
    cycle.phase = Phase.LEAVING
    cycle.writes.leave = how
    cycle.host.flush(cycle)


def answered(cycle: Cycle, status: str, signals: int, *, has_left: bool) -> None:
    """Take in whether the instance has left. If not, a signal came first, or a pause was withdrawn."""
    if has_left:
        cycle.phase = Phase.LEFT
        cycle.host.shut(cycle)
        cycle.host.left(cycle)
    elif cycle.main is None or cycle.loop.is_closed():
        leave(cycle, Leave(InstanceStatus.QUEUED))  # the handler is gone: go on with a fresh replay
    else:
        cycle.phase = Phase.DRIVING
        cycle.on_signals(status, signals)
        cycle.host.poke(cycle)


def park(cycle: Cycle) -> None:
    """Nothing runs: wait in the database, for the next deadline or for an event."""
    coming, step = cycle.timers.next(), cycle.timers.next_step()
    waiting_for = WaitingFor.EVENT if step is None else _waits_for(step)
    wake_us = None if coming is None else coming[0]
    leave(cycle, Leave(InstanceStatus.WAITING, waiting_for, wake_us, signals=cycle.signals))


def _waits_for(operation: Operation) -> WaitingFor:
    match operation.record.kind:
        case StepKind.SLEEP:
            return WaitingFor.SLEEP
        case StepKind.DO:
            return WaitingFor.RETRY
        case _:
            return WaitingFor.EVENT


def freeze(cycle: Cycle, to: InstanceStatus) -> None:
    """Stop driving the handler; leave when the running bodies have ended: paused, or given back as queued."""
    if cycle.phase is Phase.DRIVING:
        cycle.phase = Phase.FREEZING
        cycle.freezes_to = to
        cycle.host.shut(cycle)
        cycle.host.poke(cycle)


def give_back(cycle: Cycle) -> None:
    """The grace of a draining worker is over: cancel the bodies, spend no attempt, leave."""
    freeze(cycle, InstanceStatus.QUEUED)
    _cancel_bodies(cycle)
    cycle.delaying.clear()
    cycle.host.poke(cycle)


def stick(cycle: Cycle, error: NonDeterminismError) -> None:
    """Pause with a reason: nothing runs and nothing is overwritten until code or operator changes."""
    _stop(cycle)
    _cancel_bodies(cycle)
    leave(cycle, Leave(InstanceStatus.PAUSED, error=outcomes.error_json(error), insists=True))


def end(cycle: Cycle, ending: Ending) -> None:
    """The handler has ended: cancel what is open, wait for bodies to let go, then write the outcome."""
    cycle.phase = Phase.ENDING
    cycle.ending = ending
    cycle.host.shut(cycle)
    for operation in cycle.fresh:  # called, but never awaited for long enough to start
        if not operation.done():
            cycle.number(operation.record)
    cycle.fresh.clear()
    cycle.deferred.clear()
    for attempt in cycle.bodies.values():
        cycle.host.cancel_body(cycle, attempt)
    cycle.host.poke(cycle)


def write_end(cycle: Cycle, ending: Ending) -> None:
    for record in cycle.history.steps.values():
        if record.seq and not record.is_final:
            attempts.close_lost(cycle, record)
            cycle.cancel_record(record)
    cycle.open.clear()
    unreached = _unreached(cycle) if cycle.is_decided else ()
    leave(cycle, Leave(ending.status, output=ending.output, error=ending.error, unreached=unreached))


def _unreached(cycle: Cycle) -> tuple[int, ...]:
    """List what is recorded and was not called for any more: the code has changed since."""
    steps = cycle.history.steps.items()
    return tuple(record.seq for identity, record in steps if record.seq and identity not in cycle.entered)


def abandon(cycle: Cycle) -> None:
    """The lease is lost: stop everything, write nothing."""
    if cycle.phase is Phase.LEFT:
        return
    cycle.phase = Phase.LEFT
    cycle.host.shut(cycle)
    for attempt in list(cycle.bodies.values()):
        cycle.host.cancel_body(cycle, attempt)
    cycle.bodies.clear()
    cycle.writes = Writes()
    cycle.host.left(cycle)


def recover(cycle: Cycle, error: Exception) -> None:
    """The database refuses what this cycle writes, or the engine failed: end with that error, and only that.

    Refused that too, the instance is paused as it is.
    """
    refused, cycle.writes = cycle.writes, Writes()
    if cycle.is_recovering:
        cycle.host.give_up(cycle, outcomes.given_up(error))
        abandon(cycle)
        return
    cycle.is_recovering = True
    _stop(cycle)
    _cancel_bodies(cycle)
    refused.attempts |= cycle.writes.attempts
    cycle.writes = Writes()
    for record in cycle.history.steps.values():
        if record.is_recorded and (not record.is_final or record.seq in refused.steps):
            attempts.close_lost(cycle, record)
            record.delivery = record.output = record.error = None
            cycle.cancel_record(record)
    cycle.writes.attempts |= _without_outcomes(cycle, refused)
    leave(cycle, Leave(InstanceStatus.ERRORED, error=outcomes.error_json(error)))


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
    for seq, attempt in list(cycle.bodies.items()):
        cycle.host.cancel_body(cycle, attempt)
        attempts.cancel(cycle, seq, attempt)
