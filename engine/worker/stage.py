"""The stage of a shift: what its cycles ask of their host, but for what concerns the claims."""

from __future__ import annotations

import asyncio
import logging

import psycopg

from engine.replay.attempts import AttemptedOperation
from engine.replay.cycle import Cycle
from engine.replay.history import AttemptRecord
from engine.replay.host import Phase
from engine.worker.attempt import SYNC_BODIES, Bodies
from engine.worker.clock import DatabaseClock
from engine.worker.journal import Journal
from engine.worker.reader import Reader
from engine.worker.slices import Slices

log = logging.getLogger("engine.shift")

ASK_AGAIN_SECONDS = 0.5


class Stage:
    """The host of cycles (see `engine.replay.host.Host`)."""

    _reader: Reader
    _journal: Journal

    def __init__(self, name: str, *, threads: int = SYNC_BODIES) -> None:
        self.name = name
        self._threads = threads
        self._loop = asyncio.get_running_loop()
        self._clock = self._make_clock()
        self._slices = self._make_slices()
        self._bodies = self._make_bodies()
        self._cycles: dict[int, Cycle] = {}
        self._poked: set[Cycle] = set()
        self._alarms: dict[Cycle, asyncio.TimerHandle] = {}

    # What it works with; a worker for tests has other ones.

    def _make_clock(self) -> DatabaseClock:
        return DatabaseClock(self._rearm)

    def _make_slices(self) -> Slices:
        return Slices()

    def _make_bodies(self) -> Bodies:
        return Bodies(self._loop, self.now_us, threads=self._threads)

    def now_us(self) -> int:
        return self._clock.now_us()

    def due_us(self) -> int:
        return self._clock.due_us()

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
        except Exception as error:  # a defect of the engine must cost one instance, not the neighbours
            log.exception("the cycle of instance %s failed", cycle.claimed.key)
            cycle.recover(error)

    def flush(self, cycle: Cycle) -> None:
        self._journal.flush(cycle)

    def call_at(self, cycle: Cycle, when_us: int) -> None:
        self._forget_alarm(cycle)
        seconds = self._clock.seconds_until(when_us)
        self._alarms[cycle] = self._loop.call_later(seconds, self.poke, cycle)

    def _rearm(self) -> None:
        """The clock was set: alarms that were set by it before would come an hour late."""
        for cycle in list(self._cycles.values()):
            for operation in list(cycle.steps.open.values()):
                operation.rearm()
            self.poke(cycle)

    def _forget_alarm(self, cycle: Cycle) -> None:
        alarm = self._alarms.pop(cycle, None)
        if alarm is not None:
            alarm.cancel()

    def run_body(self, cycle: Cycle, operation: AttemptedOperation, attempt: AttemptRecord) -> None:
        self._bodies.run(cycle, operation, attempt)

    def cancel_body(self, cycle: Cycle, attempt: AttemptRecord) -> bool:
        return self._bodies.cancel(cycle, attempt)

    def ask_delay(
        self, cycle: Cycle, operation: AttemptedOperation, attempt: AttemptRecord, error: BaseException
    ) -> None:
        self._bodies.ask_delay(cycle, operation, attempt, error)

    def read_events(self, cycle: Cycle) -> None:
        self._loop.create_task(self._read_events(cycle, cycle.signals))

    async def _read_events(self, cycle: Cycle, signals: int) -> None:
        try:
            page = await self._reader.events(cycle.claimed.key, cycle.events.question)
        except psycopg.Error:
            # The claims' connection is gone, and with it this shift. Or not: then the cycle parks only if asked again.
            self._loop.call_later(ASK_AGAIN_SECONDS, self.read_events, cycle)
            return
        cycle.on_events(page, signals)

    def read_relations(self, cycle: Cycle) -> None:
        self._loop.create_task(self._read_relations(cycle))

    async def _read_relations(self, cycle: Cycle) -> None:
        try:
            found = await self._reader.relatives(cycle.claimed, cycle.relations.question)
        except psycopg.Error:
            self._loop.call_later(ASK_AGAIN_SECONDS, self.read_relations, cycle)  # as above
            return
        cycle.on_relations(found)

    def drive(self, cycle: Cycle) -> None:
        self._slices.drive(cycle)

    def shut(self, cycle: Cycle) -> None:
        self._slices.shut(cycle)

    def left(self, cycle: Cycle) -> None:
        key = cycle.claimed.key
        if self._cycles.get(key) is cycle:
            del self._cycles[key]
        self._forget_alarm(cycle)
        self._slices.forget(cycle)
