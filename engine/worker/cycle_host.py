"""The interface between cycles and the worker that holds them."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

import psycopg

from engine.replay.attempts.attempt import AttemptedOperation
from engine.replay.cycle import Cycle
from engine.replay.host import Phase
from engine.replay.records.history import AttemptRecord
from engine.worker.bodies.attempt import Bodies
from engine.worker.bodies.slices import Slices
from engine.worker.database.clock import DatabaseClock
from engine.worker.database.journal import Journal
from engine.worker.database.reader import Reader

log = logging.getLogger("engine.shift")

ASK_AGAIN_SECONDS = 0.5


class Holder(Protocol):
    """What the claimer of a worker learns about cycles: it knows which instances this worker may hold."""

    def left(self, cycle: Cycle) -> None: ...
    def give_up(self, cycle: Cycle, reason: str) -> None: ...
    def cleared(self, cycle: Cycle) -> None: ...
    def rested(self, cycle: Cycle) -> None: ...


class CycleHost:
    """The cycles of a worker, and their host (see `engine.replay.host.Host`)."""

    holder: Holder  # set by the claimer

    def __init__(
        self,
        name: str,
        cycles: dict[int, Cycle],
        *,
        clock: DatabaseClock,
        slices: Slices,
        bodies: Bodies,
        reader: Reader,
        journal: Journal,
    ) -> None:
        self.name = name
        self.cycles = cycles  # held cycles, by the keys of their instances
        self.clock = clock
        self.bodies = bodies
        self._slices = slices
        self._reader = reader
        self._journal = journal
        self._loop = asyncio.get_running_loop()
        self._poked: set[Cycle] = set()
        self._alarms: dict[Cycle, asyncio.TimerHandle] = {}

    def now_us(self) -> int:
        return self.clock.now_us()

    def due_us(self) -> int:
        return self.clock.due_us()

    def poke(self, cycle: Cycle) -> None:
        if cycle not in self._poked:
            self._poked.add(cycle)
            self._loop.call_soon(self._advance, cycle)

    def _advance(self, cycle: Cycle) -> None:
        self._poked.discard(cycle)
        if cycle.phase is Phase.LEFT:
            return
        try:
            cycle.advance()
        except Exception as error:  # a bug in the engine must affect one instance, not the others
            log.exception("the cycle of instance %s failed", cycle.claimed.key)
            cycle.recover(error)

    def flush(self, cycle: Cycle) -> None:
        self._journal.flush(cycle)

    def call_at(self, cycle: Cycle, when_us: int) -> None:
        self._forget_alarm(cycle)
        seconds = self.clock.seconds_until(when_us)
        self._alarms[cycle] = self._loop.call_later(seconds, self.poke, cycle)

    def rearm(self) -> None:
        """Set all alarms again: the clock was changed, and the earlier alarms might come an hour late."""
        for cycle in list(self.cycles.values()):
            for operation in list(cycle.steps.open.values()):
                operation.rearm()
            self.poke(cycle)

    def _forget_alarm(self, cycle: Cycle) -> None:
        alarm = self._alarms.pop(cycle, None)
        if alarm is not None:
            alarm.cancel()

    def run_body(self, cycle: Cycle, operation: AttemptedOperation, attempt: AttemptRecord) -> None:
        self.bodies.run(cycle, operation, attempt)

    def cancel_body(self, cycle: Cycle, attempt: AttemptRecord) -> bool:
        return self.bodies.cancel(cycle, attempt)

    def ask_delay(
        self, cycle: Cycle, operation: AttemptedOperation, attempt: AttemptRecord, error: BaseException
    ) -> None:
        self.bodies.ask_delay(cycle, operation, attempt, error)

    def read_events(self, cycle: Cycle) -> None:
        self._loop.create_task(self._read_events(cycle, cycle.signals))

    async def _read_events(self, cycle: Cycle, signals: int) -> None:
        try:
            page = await self._reader.events(cycle.claimed.key, cycle.events.question)
        except psycopg.Error:
            # The connection of the claims is gone, and this shift with it. If not, the cycle asks again before it
            # parks.
            self._loop.call_later(ASK_AGAIN_SECONDS, self.read_events, cycle)
            return
        cycle.on_events(page, signals)

    def read_relations(self, cycle: Cycle) -> None:
        self._loop.create_task(self._read_relations(cycle))

    async def _read_relations(self, cycle: Cycle) -> None:
        try:
            found = await self._reader.relations(cycle.claimed, cycle.relations.question)
        except psycopg.Error:
            self._loop.call_later(ASK_AGAIN_SECONDS, self.read_relations, cycle)  # as above
            return
        cycle.on_relations(found)

    def read_wake_ups(self, cycle: Cycle) -> None:
        self._loop.create_task(self._read_wake_ups(cycle))

    async def _read_wake_ups(self, cycle: Cycle) -> None:
        try:
            found = await self._reader.wake_ups(cycle.claimed, cycle.wake_ups.question)
        except psycopg.Error:
            self._loop.call_later(ASK_AGAIN_SECONDS, self.read_wake_ups, cycle)  # as above
            return
        cycle.on_wake_ups(found)

    def drive(self, cycle: Cycle) -> None:
        self._slices.drive(cycle)

    def shut(self, cycle: Cycle) -> None:
        self._slices.shut(cycle)

    def holds_only(self, cycle: Cycle) -> bool:
        return self.cycles.keys() <= {cycle.claimed.key}

    def left(self, cycle: Cycle) -> None:
        key = cycle.claimed.key
        if self.cycles.get(key) is cycle:
            del self.cycles[key]
        self._forget_alarm(cycle)
        self._slices.forget(cycle)
        self.holder.left(cycle)
        self._loop.call_soon(cycle.forget)  # it may be in the middle of a turn

    def give_up(self, cycle: Cycle, reason: str) -> None:
        self.holder.give_up(cycle, reason)

    def cleared(self, cycle: Cycle) -> None:
        self.holder.cleared(cycle)

    def rested(self, cycle: Cycle) -> None:
        self.holder.rested(cycle)
