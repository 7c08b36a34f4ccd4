"""Waits for events: the oldest event of a fitting type goes to the oldest wait."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

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
    cycle.waits.add(operation)
    if cycle.events.is_offered and cycle.waits.are_known:
        _take_buffered(cycle, operation)
    else:
        match(cycle)
    if record.seq in cycle.waits:
        cycle.wait_until(operation, record.wake_us, is_new=not record.is_recorded)


def _take_buffered(cycle: Cycle, operation: WaitOperation) -> None:
    """Give a new wait the oldest event that it takes: of those that are left, older waits take none."""
    for at, event in enumerate(cycle.events.events):
        if _takes(operation, event):
            del cycle.events.events[at]
            _consume(cycle, operation, event)
            break
    _read_on(cycle)


def match(cycle: Cycle) -> None:
    """Give each buffered event to the oldest wait that takes it; read on while a wait may find one."""
    # All or none: an older event of the types that are not here may belong to a wait that would take a younger one.
    if cycle.waits.are_known:
        _give(cycle)
        cycle.events.is_offered = True
    _read_on(cycle)


def _read_on(cycle: Cycle) -> None:
    if cycle.waits and (cycle.events.is_cut or cycle.events.is_stale or not cycle.waits.are_known):
        cycle.read_events()


def _give(cycle: Cycle) -> None:
    events, left = cycle.events.events, list[EventRecord]()
    for at, event in enumerate(events):
        if not cycle.waits:
            left += events[at:]
            break
        taker = cycle.waits.oldest(event.type, event.received_us)
        if taker is None:
            left.append(event)
        else:
            _consume(cycle, taker, event)
    events[:] = left


def _takes(operation: WaitOperation, event: EventRecord) -> bool:
    record = operation.record
    return event.type in record.event_types and (
        record.wake_us is None or event.received_us <= record.wake_us
    )


def _consume(cycle: Cycle, operation: WaitOperation, event: EventRecord) -> None:
    cycle.waits.remove(operation.record.seq)
    cycle.events.consumed.add(event.key)
    cycle.writes.consumed[event.key] = operation.record.seq
    cycle.conclude(operation, output=outcomes.event_json(event))


def expire(cycle: Cycle, operation: WaitOperation) -> None:
    """Time the wait out, once it is sure that no event came before its deadline."""
    record = operation.record
    deadline = record.wake_us
    if deadline is None or record.seq not in cycle.waits:
        return
    if cycle.events.as_of_us < deadline or not cycle.events.covers(frozenset(record.event_types)):
        cycle.read_events()
        return
    cycle.waits.remove(record.seq)
    # The call's own, where it still has one: a pause has moved the deadline.
    length_us = deadline - record.started_us if operation.timeout_us is None else operation.timeout_us
    timeout = timedelta(microseconds=length_us)
    types = record.event_types[0] if len(record.event_types) == 1 else record.event_types
    error = operation.timed_out(types, timeout)
    cycle.conclude(operation, error=outcomes.error_json(error, step=record.name))


def expire_overdue(cycle: Cycle) -> None:
    """After events were read: time out the waits whose deadline has passed.

    Also one that passed while they were read: its timer has fired then, and asked for what was being read already.
    """
    now_us = cycle.host.due_us()
    for operation in cycle.waits:
        deadline = operation.record.wake_us
        if deadline is not None and deadline <= now_us:
            expire(cycle, operation)
