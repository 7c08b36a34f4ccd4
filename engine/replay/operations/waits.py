"""Waits for events: `step.wait_for_event` and `step.listen`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from engine.replay.calls import phases
from engine.replay.operations.operation import Operation
from engine.replay.records import outcomes
from engine.replay.records.history import EventRecord, StepRecord
from engine.replay.state import CycleState
from engine.values.errors import EventTimeoutError
from engine.values.states import StepStatus, WaitingFor


class WaitOperation(Operation):
    """A call of `step.wait_for_event` or `step.listen`."""

    waiting_for = WaitingFor.EVENT

    def __init__(
        self,
        cycle: CycleState,
        record: StepRecord,
        types: tuple[str, ...],
        timeout_us: int | None,
        decode: Callable[[str], Any],
    ) -> None:
        super().__init__(cycle, record, decode)
        self.types = types
        self.timeout_us = timeout_us

    def begin(self) -> None:
        """Consume a buffered event, or wait."""
        record = self.record
        if not record.is_recorded:
            record.status = StepStatus.WAITING
            record.event_types = self.types
            if self.timeout_us is not None:
                record.wake_us = record.started_us + self.timeout_us
        self.cycle.waits.add(self)
        self.cycle.matching.offer_to(self)
        if self.phase is phases.WAITING:
            self.cycle.wait_until(self, record.wake_us, is_new=not record.is_recorded)

    def receive(self, event: EventRecord) -> None:
        """Consume the event, which is the outcome."""
        self.cycle.writes.consumed[event.key] = self.record.seq
        self.cycle.conclude(self, output=outcomes.event_json(event))

    def fire(self) -> None:
        self.expire()

    def expire(self) -> None:
        """Time out, once it is certain that no event came before the deadline."""
        cycle, record, deadline = self.cycle, self.record, self.record.wake_us
        if deadline is None or self.phase is not phases.WAITING:
            return
        if cycle.events.as_of_us < deadline or not cycle.events.covers(frozenset(record.event_types)):
            cycle.matching.read()
            return
        # The length that the call gives, if it still gives one: a pause moves the deadline.
        length_us = deadline - record.started_us if self.timeout_us is None else self.timeout_us
        types = record.event_types[0] if len(record.event_types) == 1 else record.event_types
        error = self.timed_out(types, timedelta(microseconds=length_us))
        cycle.conclude(self, error=outcomes.error_json(error, step=record.name))

    def timed_out(self, types: str | Sequence[str], timeout: timedelta) -> EventTimeoutError:
        """Return the error that the handler gets."""
        return EventTimeoutError(self.record.name, types, timeout)

    def closed(self) -> None:
        self.cycle.waits.remove(self.record.seq)
