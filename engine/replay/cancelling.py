"""What becomes of a step that nobody waits for any more: its body is let go, and it is recorded as cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.replay import attempts
from engine.replay.history import StepRecord
from engine.states import StepKind, StepStatus

if TYPE_CHECKING:
    from engine.replay.cycle import Cycle
    from engine.replay.operation import Operation


def withdraw(cycle: Cycle, operation: Operation) -> None:
    """The handler has cancelled this operation."""
    if cycle.loop.is_closed():
        return  # it is being closed, not cancelled
    record = operation.record
    if record.is_final or not record.seq or cycle.deliveries.entered[record.identity].is_wanted:
        return
    cancel_inner(cycle, operation)
    cancel_step(cycle, record)


def cancel_inner(cycle: Cycle, operation: Operation) -> None:
    """The operation is over: cancel what belongs to it and is not."""
    inner = [one for one in operation.inner() if one.seq and not one.is_final]
    for one in inner:  # before, or what is put off would begin when the body before it is dropped
        _let_go(cycle, one)
    for one in inner:
        cancel_step(cycle, one)


def cancel_step(cycle: Cycle, record: StepRecord) -> None:
    """Cancel a step for good."""
    # Recorded by an earlier worker, it may not have been begun by this one.
    attempts.close_lost(cycle, record)
    _let_go(cycle, record)
    cycle.waits.remove(record.seq)
    cycle.relations.open.pop(record.seq, None)
    if attempts.drop(cycle, record):
        cancel_record(cycle, record)


def _let_go(cycle: Cycle, record: StepRecord) -> None:
    operation = cycle.open.pop(record.seq, None)
    if operation is not None:
        operation.let_go()


def call_off(cycle: Cycle, operation: Operation) -> None:
    """End an inner step whose owner does not want it any more."""
    cycle.open.pop(operation.record.seq, None)
    cancel_record(cycle, operation.record)
    if operation.owner is not None:
        operation.owner.settled(operation)
    cycle.host.poke(cycle)


def cancel_record(cycle: Cycle, record: StepRecord) -> None:
    record.status = StepStatus.CANCELLED
    record.wake_us = None
    record.finished_us = cycle.host.now_us()
    if record.kind == StepKind.CHILD:
        cycle.writes.children.pop(record.seq, None)
        cycle.writes.owes = True
    cycle.record(record)
