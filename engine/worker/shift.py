"""A shift: one loop in one worker that claims due instances and drives their cycles side by side.

    take a seat → reap what the dead left → claim what is due → drive → wait for a wake-up, a due time, or 5 s

It holds its seat as long as the connection of that lives; the others are opened again when they break. Losing its
seat, it gives up everything it holds, without a write, and takes a new one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

import psycopg

from engine.replay import leaving
from engine.replay.cycle import Cycle
from engine.states import InstanceStatus
from engine.worker.changes import Changes
from engine.worker.claims import HANG_BACK_SECONDS, Claims, Isolates
from engine.worker.heart import Heart, lease_seconds
from engine.worker.journal import Journal
from engine.worker.kin import Debts
from engine.worker.line import Line
from engine.worker.reader import Reader
from engine.worker.seat import Seat, SeatLost

log = logging.getLogger("engine.shift")

GRACE_SECONDS = 10.0
DRAIN_SECONDS = 60.0  # for a shift that ends of age
LAST_WRITES_SECONDS = 3.0
TICK_SECONDS = 0.25
RECONNECT_SECONDS = (0.1, 0.2, 0.5, 1.0)


def run(
    *,
    slots: int,
    name: str,
    should_stop: Callable[[], bool],
    idle_seconds: float = 15.0,
    max_seconds: float = 900.0,
    isolates: Isolates = Isolates.WHEN_EMPTY,
) -> None:
    """Work until there was nothing to do for `idle_seconds`, or for `max_seconds` in all, or until told to stop.

    Instances whose last worker died are taken one at a time, each alone, and given back as soon as they got on;
    `isolates` says whether this shift does that.
    """
    with asyncio.Runner() as runner:
        runner.run(_work(slots, name, should_stop, idle_seconds, max_seconds, isolates))


async def _work(
    slots: int,
    name: str,
    should_stop: Callable[[], bool],
    idle_seconds: float,
    max_seconds: float,
    isolates: Isolates,
) -> None:
    ends_at = time.monotonic() + max_seconds
    failures = 0
    while not should_stop():
        shift = Shift(slots, name, should_stop, idle_seconds, ends_at, isolates=isolates)
        try:
            await shift.work()
        except (SeatLost, psycopg.Error, OSError) as error:
            log.warning("the shift lost its database: %s", error)
            failures = 0 if shift.has_worked else failures + 1
            await asyncio.sleep(RECONNECT_SECONDS[min(failures, len(RECONNECT_SECONDS) - 1)])
        else:
            return


class Shift(Claims):
    """From its seat to its end."""

    def __init__(
        self,
        slots: int,
        name: str,
        should_stop: Callable[[], bool],
        idle_seconds: float,
        ends_at: float,
        *,
        isolates: Isolates = Isolates.WHEN_EMPTY,
    ) -> None:
        super().__init__(slots, name, isolates)
        self._should_stop = should_stop
        self._idle_seconds = idle_seconds
        self._ends_at = ends_at
        self._lines: list[Line] = []

    async def work(self) -> None:
        async with asyncio.timeout(lease_seconds()):
            self._seat = await Seat.take(self.name, self._on_wake)
        heart = Heart(self._seat.number, self._slices.allowance)
        tasks: list[asyncio.Task[None]] = []
        try:
            self._reader = Reader(
                await self._open("claims", is_durable=False),
                self._seat.number,
                self._clock,
                self._on_reopened,
            )
            await self._reader.set_clock()
            self._changes = Changes(self._reader)
            self._debts = Debts(lambda: self._open("kin", is_durable=False), self._changes.add)
            self._journal = Journal(
                await self._open("journal"),
                self._seat.number,
                self._clock,
                self._on_written,
                self._debts.pay,
            )
            heart.start()
            helpers = (self._journal.run(), self._changes.run(), self._debts.run(), self._tick(heart))
            tasks = [self._loop.create_task(one) for one in (self._claim_and_wait(), *helpers)]
            await asyncio.wait([*tasks, self._seat.lost], return_when=asyncio.FIRST_COMPLETED)
            for ended in (*tasks, self._seat.lost):
                if ended.done():
                    await ended
        finally:
            heart.stop()
            await self._stop(tasks)

    async def _open(self, what: str, *, is_durable: bool = True) -> Line:
        line = await Line.open(f"reprise {what} {self.name}", is_durable=is_durable)
        self._lines.append(line)
        return line

    async def _stop(self, tasks: list[asyncio.Task[None]]) -> None:
        """Leave nothing running. What could be given back has left by now; the rest is abandoned."""
        for cycle in list(self._cycles.values()):
            leaving.abandon(cycle)
        # First of all: psycopg would ask the server to cancel what runs, and wait for one that may not answer.
        for line in self._lines:
            await line.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._slices.close()
        self._bodies.stop()
        await self._seat.leave()

    async def _claim_and_wait(self) -> None:
        while not await self._claim_for_a_while():
            # What is held runs too long to wait for; others must not.
            self._ends_at = time.monotonic() + DRAIN_SECONDS

    async def _claim_for_a_while(self) -> bool:
        """Claim until the shift has to end; tell whether it has, holding nothing."""
        busy_at = time.monotonic()
        while not self._must_end():
            self._woken.clear()
            if time.monotonic() >= self._sweep_at:
                await self._sweep()
                await self._step_forward()
            if self._signalled:
                await self._look_for_signals()
            claimed = await self._claim()
            if claimed or self._cycles:
                busy_at = time.monotonic()
            elif time.monotonic() - busy_at > self._idle_seconds:
                return True
            if not (claimed and self._has_backlog):
                await self._wait()
        return await self._drain()

    def _must_end(self) -> bool:
        return self._is_urgent() or time.monotonic() > self._ends_at

    async def _drain(self) -> bool:
        """Claim no more: let bodies end and be recorded, then give everything back. Told to stop, insist on it.

        Where nothing but its age ends the shift, bodies that take long are left alone: tell whether any was.
        """
        if self._signalled:  # what is held for nothing would be taken for what a dead worker left
            await self._look_for_signals()
        for cycle in list(self._cycles.values()):
            leaving.freeze(cycle, InstanceStatus.QUEUED)
        await self._until_empty(GRACE_SECONDS if self._is_urgent() else DRAIN_SECONDS)
        if self._has_freed:
            await self._reader.notify_wake()
        if not self._cycles or not self._is_urgent():
            return not self._cycles
        for cycle in list(self._cycles.values()):
            leaving.give_back(cycle)
        await self._until_empty(LAST_WRITES_SECONDS)
        return True

    def _is_urgent(self) -> bool:
        # Bodies that wait for a thread wait in vain once every thread is stuck.
        return self._should_stop() or self._bodies.threads.all_stuck

    async def _until_empty(self, seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        while self._cycles and time.monotonic() < ends_at:
            if self._is_urgent():
                ends_at = min(ends_at, time.monotonic() + GRACE_SECONDS)
            if self._signalled:
                await self._look_for_signals()  # a body that outlives its instance must not hold up the rest
            await asyncio.sleep(0.01)

    async def _tick(self, heart: Heart) -> None:
        """Show that the loop moves, end the wait when the worker is to stop, and no longer wait in vain."""
        patience = lease_seconds()
        ask_at = time.monotonic() + patience / 2
        while True:
            heart.moved()
            heart.holds = bool(self._cycles)
            if self._should_stop():
                self._woken.set()
            if time.monotonic() > ask_at:
                ask_at = time.monotonic() + patience / 2
                self._seat.ask()
            if self._waits_longer_than(patience):
                raise SeatLost(f"no answer for {patience:g} s")
            await asyncio.sleep(TICK_SECONDS)

    def _waits_longer_than(self, seconds: float) -> bool:
        return self._seat.waits_longer_than(seconds) or any(
            line.waits_longer_than(seconds) for line in self._lines
        )

    def _on_wake(self, payload: str) -> None:
        if payload == "reap":
            self._sweep_at = 0.0
            self._somebody_died = True
        elif payload == str(self._seat.number):
            self._signalled = True
        elif payload != "":
            return
        elif not self._is_front:
            self._loop.call_later(HANG_BACK_SECONDS, self._woken.set)
            return
        self._woken.set()

    def _on_reopened(self) -> None:
        """The connection for claims had broken: an answer may have been lost that told what this seat holds now."""
        self._is_front = False  # it went with the connection
        self._sweep_at = 0.0
        self._signalled = True
        self._woken.set()

    def _on_written(self, cycles: list[Cycle]) -> None:
        self._changes.add(cycle.claimed.key for cycle in cycles)
