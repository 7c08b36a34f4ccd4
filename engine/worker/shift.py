"""A shift: one loop in one worker that claims due instances and drives their cycles side by side.

    take a seat → reap what the dead left → claim what is due → drive → wait for a wake-up, a due time, or 5 s

It holds its seat as long as the connection of that lives; the others are opened again when they break. Losing its
seat, it gives up everything it holds, without a write, and takes a new one. A shift whose place another one is to take
claims no more, and drives on what it holds until that has left.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import psycopg

from engine.notify import ALONE, REAP
from engine.registry import workflows
from engine.replay.cycle import Cycle
from engine.states import InstanceStatus
from engine.worker import loop_end
from engine.worker.attempt import SYNC_BODIES, Bodies
from engine.worker.changes import Changes
from engine.worker.claims import HANG_BACK_SECONDS, LEAVE_SECONDS, Claims, Isolates
from engine.worker.heart import Heart, lease_seconds
from engine.worker.journal import Journal
from engine.worker.kin import Debts
from engine.worker.line import Line
from engine.worker.notices import NOTICE, Notices, worker_ends
from engine.worker.periodic import Periodic
from engine.worker.reader import Reader
from engine.worker.retirement import Relief, Retirement
from engine.worker.seat import Seat, SeatLost

log = logging.getLogger("engine.shift")

GRACE_SECONDS = 10.0
LAST_WRITES_SECONDS = 3.0
TICK_SECONDS = 0.25
LOOK_SECONDS = 0.5
RECONNECTED_SECONDS = 0.5  # a living worker that has lost its connection takes back by itself what it held
BEAT_SECONDS = 5.0
RECONNECT_SECONDS = (0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a shift works."""

    slots: int
    name: str
    should_stop: Callable[[], bool]
    idle_seconds: float = float("inf")  # after so long without anything to do it ends
    isolates: Isolates = Isolates.WHEN_EMPTY
    relief: Relief | None = None  # without one it is not replaced
    threads: int = SYNC_BODIES  # for sync bodies
    is_permanent: bool = False  # one of a cluster's: it says that it is there
    keeps_time: bool = False  # does what is due by the clock


def run(terms: Terms) -> None:
    """Work until told to stop, until another worker has taken over, or until there was nothing to do for long."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(_work(terms))
    finally:
        loop_end.close(loop)


async def _work(terms: Terms) -> None:
    failures, earlier = 0, list[Bodies]()
    while not terms.should_stop():
        shift = Shift(terms, earlier)
        try:
            await shift.work()
        except (SeatLost, psycopg.Error, OSError) as error:
            log.warning("the shift lost its database: %s", error)
            if shift.is_leaving:
                return
            earlier = shift.bodies_left
            failures = 0 if shift.has_worked else failures + 1
            await asyncio.sleep(RECONNECT_SECONDS[min(failures, len(RECONNECT_SECONDS) - 1)])
        else:
            return


class Shift(Claims):
    """From its seat to its end."""

    def __init__(self, terms: Terms, earlier: Iterable[Bodies] = ()) -> None:
        super().__init__(terms.slots, terms.name, terms.isolates, threads=terms.threads)
        self._terms = terms
        self._should_stop = terms.should_stop
        self._earlier = earlier
        self._retirement = Retirement(terms.relief, self._bodies, earlier=earlier)
        self._lines: list[Line] = []
        self._notices = Notices(lambda: self._reader)

    @property
    def is_leaving(self) -> bool:
        """Tell whether another worker takes, or has taken, the place of this one."""
        return self._retirement.has_begun

    @property
    def bodies_left(self) -> list[Bodies]:
        """Return what still runs bodies in this process, of this shift and of those before it."""
        return [bodies for bodies in (*self._earlier, self._bodies) if bodies.left]

    async def work(self) -> None:
        async with asyncio.timeout(lease_seconds()):
            self._seat = await Seat.take(self.name, self._on_wake)
        heart = Heart(
            self._seat.number, self._slices.allowance, lambda reason: worker_ends(self.name, reason)
        )
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
            parts = (self._journal, self._changes, self._debts, self._notices)
            helpers = [*(part.run() for part in parts), self._tick(heart)]
            if self._terms.is_permanent:
                helpers += [self._look(), self._beat()]
            if self._terms.keeps_time:
                helpers.append(Periodic(self._reader, lambda: self._is_front).run())
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
            cycle.exit.abandon()
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
        """Claim until the shift has to end, holding nothing then."""
        busy_at = time.monotonic()
        while not self._should_stop():
            self._woken.clear()
            if time.monotonic() >= self._sweep_at:
                await self._sweep()
                await self._step_forward()
            if self._signalled:
                await self._look_for_signals()
            claimed = await self._claim()
            if not self._claims:
                self._let_leave()
            if claimed or self._cycles:
                busy_at = time.monotonic()
            elif not self._claims or time.monotonic() - busy_at > self._terms.idle_seconds:
                break
            if not (claimed and self._has_backlog):
                await self._wait()
        await self._drain()
        if self._terms.is_permanent:
            await self._reader.leave()

    async def _drain(self) -> None:
        """Claim no more: let bodies end and be recorded, for a while, then give everything back."""
        if self._signalled:  # what is held for nothing would be taken for what a dead worker left
            await self._look_for_signals()
        for cycle in list(self._cycles.values()):
            cycle.exit.quiesce(InstanceStatus.QUEUED)
        await self._until_empty(GRACE_SECONDS)
        if self._has_freed:
            await self._reader.notify_wake()
        for cycle in list(self._cycles.values()):
            cycle.exit.release()
        await self._until_empty(LAST_WRITES_SECONDS)

    async def _until_empty(self, seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        while self._cycles and time.monotonic() < ends_at:
            if self._signalled:
                await self._look_for_signals()  # a body that outlives its instance must not hold up the rest
            await asyncio.sleep(0.01)

    async def _look(self) -> None:
        """Notice soon what a worker has left that nobody tells of: a whole machine may be gone."""
        had_orphans = False
        while True:
            await asyncio.sleep(RECONNECTED_SECONDS if had_orphans else LOOK_SECONDS)
            has_orphans, has_debts = await self._reader.look()
            if has_orphans and had_orphans:
                self._on_wake(REAP)
            had_orphans = has_orphans and not had_orphans
            if has_debts:
                self._debts.pay()

    async def _beat(self) -> None:
        """Say for people that this shift is there."""
        while True:
            await self._reader.beat(
                name=self.name, workflows=sorted(workflows), slots=self._slots, held=len(self._cycles)
            )
            await asyncio.sleep(BEAT_SECONDS)

    async def _tick(self, heart: Heart) -> None:
        """Show that the loop moves, end the wait when the worker is to stop, and no longer wait in vain."""
        patience = lease_seconds()
        ask_at = time.monotonic() + patience / 2
        while True:
            heart.moved()
            heart.holds = bool(self._cycles)
            if self._should_stop():
                self._woken.set()
            self._retire()
            if time.monotonic() > ask_at:
                ask_at = time.monotonic() + patience / 2
                self._seat.ask()
            if self._waits_longer_than(patience):
                raise SeatLost(f"no answer for {patience:g} s")
            await asyncio.sleep(TICK_SECONDS)

    def _retire(self) -> None:
        """Let another worker take over when it is time; until that is there, this one goes on claiming."""
        if not self._retirement.look() or self._leaves_at != float("inf"):
            return
        self._leaves_at = time.monotonic() + LEAVE_SECONDS
        self._loop.call_later(LEAVE_SECONDS, self._woken.set)
        if self._retirement.trouble:
            self._loop.create_task(self._notices.worker_retired(self.name, self._retirement.trouble))

    def _waits_longer_than(self, seconds: float) -> bool:
        return self._seat.waits_longer_than(seconds) or any(
            line.waits_longer_than(seconds) for line in self._lines
        )

    def _on_wake(self, payload: str) -> None:
        if payload == REAP:
            self._sweep_at = 0.0
            self._somebody_died = True
        elif payload == str(self._seat.number):
            self._signalled = True
        elif payload == ALONE and self._claims_isolated_only:
            self._wants_isolated = True
            self._loop.call_later(HANG_BACK_SECONDS * len(self._cycles), self._woken.set)
            return
        elif payload == NOTICE:
            self._notices.look()
            return
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
