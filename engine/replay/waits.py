"""Waits for events: the oldest event of a fitting type goes to the oldest wait."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from engine.errors import EventTimeoutError
from engine.replay import outcomes
from engine.replay.history import EventRecord
from engine.states import StepStatus

if TYPE_CHECKING:
    from engine.replay.cycle import Cycle
    from engine.replay.operation import WaitOperation


def begin(cycle: Cycle, operation: WaitOperation) -> None:
    """Take a buffered event at once, or wait."""
    record = operation.record
    if not record.is_recorded:
        record.status = StepStatus.WAITING
        record.event_types = operation.types
        if operation.timeout_us is not None:
            record.wake_us = record.started_us + operation.timeout_us
    cycle.waits[record.seq] = operation
    match(cycle)
    if record.seq in cycle.waits:
        cycle.wait_until(operation, record.wake_us, is_new=not record.is_recorded)


def match(cycle: Cycle) -> None:
    """Give each buffered event to the oldest wait that takes it; what nobody takes stays buffered."""
    if not cycle.events or not cycle.waits:
        return
    left: list[EventRecord] = []
    for at, event in enumerate(cycle.events):
        if not cycle.waits:
            left += cycle.events[at:]  # there may be thousands
            break
        taker = _taker(cycle, event)
        if taker is None:
            left.append(event)
        else:
            _consume(cycle, taker, event)
    cycle.events[:] = left


def _taker(cycle: Cycle, event: EventRecord) -> WaitOperation | None:
    for seq in sorted(cycle.waits):
        operation = cycle.waits[seq]
        deadline = operation.record.wake_us
        if event.type in operation.record.event_types and (deadline is None or event.received_us <= deadline):
            return operation
    return None


def _consume(cycle: Cycle, operation: WaitOperation, event: EventRecord) -> None:
    del cycle.waits[operation.record.seq]
    cycle.consumed.add(event.key)
    cycle.writes.consumed[event.key] = operation.record.seq
    cycle.conclude(operation, output=outcomes.event_json(event))


def expire(cycle: Cycle, operation: WaitOperation) -> None:
    """Time the wait out, once it is sure that no event came before its deadline."""
    record = operation.record
    deadline = record.wake_us
    if deadline is None or record.seq not in cycle.waits:
        return
    if cycle.events_as_of_us < deadline:
        cycle.read_events()
        return
    del cycle.waits[record.seq]
    # The call's own, where it still has one: a pause has moved the deadline.
    length_us = deadline - record.started_us if operation.timeout_us is None else operation.timeout_us
    timeout = timedelta(microseconds=length_us)
    types = record.event_types[0] if len(record.event_types) == 1 else record.event_types
    error = EventTimeoutError(record.name, types, timeout)
    cycle.conclude(operation, error=outcomes.error_json(error, step=record.name))


def expire_overdue(cycle: Cycle) -> None:
    """After events were read: time out the waits whose deadline had passed by then."""
    for operation in [cycle.waits[seq] for seq in sorted(cycle.waits)]:
        deadline = operation.record.wake_us
        if deadline is not None and deadline <= cycle.events_as_of_us:
            expire(cycle, operation)
