"""Durable calls that a cycle carries out, one class for each kind; here sleeps and milestones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from engine.replay.calls.call import Call, Owner
from engine.replay.records.history import StepRecord
from engine.replay.state import CycleState
from engine.values.states import StepStatus, WaitingFor


class Operation(Call):
    """A call with the cycle that carries it out."""

    def __init__(
        self,
        cycle: CycleState,
        record: StepRecord,
        decode: Callable[[str], Any],
        *,
        owner: Owner | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        # Only the handler's own calls are repeated on every replay.
        number = next(cycle.loop.numbers.futures) if owner is None else None
        super().__init__(record, decode, loop=loop or cycle.loop, number=number, owner=owner)
        self.cycle = cycle

    def withdraw(self) -> None:
        cycle, record = self.cycle, self.record
        if cycle.loop.is_closed():
            return  # the handler is closed, which cancels nothing
        if record.is_final or not record.seq:
            return
        entered = cycle.deliveries.entered[record.identity]
        if not entered.is_wanted:
            cycle.cancel_inner(entered)
            cycle.cancel(record)

    def arm(self, when_us: int) -> None:
        self.cycle.timers.add(when_us, self.record.seq)


class SleepOperation(Operation):
    """A call of `step.sleep` (`duration_us`) or `step.sleep_until` (`until_us`)."""

    waiting_for = WaitingFor.SLEEP

    def __init__(
        self, cycle: CycleState, record: StepRecord, duration_us: int | None, until_us: int | None
    ) -> None:
        super().__init__(cycle, record, _nothing)
        self.duration_us = duration_us
        self.until_us = until_us

    def begin(self) -> None:
        record = self.record
        if not record.is_recorded:
            until = self.until_us
            record.wake_us = until if until is not None else record.started_us + (self.duration_us or 0)
            record.wake_is_fixed = until is not None
            record.status = StepStatus.WAITING
        self.cycle.wait_until(self, record.wake_us, is_new=not record.is_recorded)

    def fire(self) -> None:
        self.cycle.conclude(self)


class ProgressOperation(Operation):
    """A call of `step.progress`: a milestone, complete once it is recorded."""

    def __init__(self, cycle: CycleState, record: StepRecord, output: str) -> None:
        super().__init__(cycle, record, _nothing)
        self.output = output

    def begin(self) -> None:
        self.cycle.conclude(self, output=self.output)


def _nothing(text: str) -> None:
    return None
