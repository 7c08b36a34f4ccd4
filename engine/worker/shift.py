"""A shift: one loop in one worker that claims due instances and drives their cycles side by side.

    lock a worker id → reap what the dead left → claim what is due → drive → wait for a wake-up, a due time, or 5 s

It keeps its worker id as long as the connection of its lock lives; the other connections are opened again when they
break. If it loses its lock, it abandons everything it holds without a write, and takes a new id. A shift that is being
replaced stops claiming and drives what it holds until that has left.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

import psycopg

from engine.replay.cycle import Cycle
from engine.steer.notify import DRAIN, REAP
from engine.values.states import InstanceStatus
from engine.worker import loop_end
from engine.worker.beats import Beats
from engine.worker.bodies.attempt import SYNC_BODIES, Bodies
from engine.worker.bodies.slices import Slices
from engine.worker.claims import Claimer
from engine.worker.cycle_host import CycleHost
from engine.worker.database.changes import Changes
from engine.worker.database.clock import DatabaseClock
from engine.worker.database.heartbeat import Heartbeat, lease_seconds
from engine.worker.database.journal import Journal
from engine.worker.database.reader import Reader
from engine.worker.database.shift_connection import ShiftConnection
from engine.worker.database.worker_lock import WorkerLock, WorkerLockLost
from engine.worker.drain import Drain
from engine.worker.idle_memory import IdleMemory
from engine.worker.membership import Membership
from engine.worker.notices import NOTICE, Notices, worker_ends
from engine.worker.parent_notices import ParentNotices
from engine.worker.periodic import Periodic
from engine.worker.quarantined import TakesQuarantined
from engine.worker.retirement import Relief, Retirement
from engine.worker.tally import Tally

log = logging.getLogger("engine.shift")

GRACE_SECONDS = 10.0
UNHURRIED_SECONDS = 0.1
LAST_WRITES_SECONDS = 3.0
TICK_SECONDS = 0.25
LOOK_SECONDS = 0.5
COUNT_SECONDS = 5.0
RECONNECTED_SECONDS = 0.5  # a live worker that has lost its connection takes back by itself what it held
RECONNECT_SECONDS = (0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The settings of a shift."""

    slots: int
    name: str
    should_stop: Callable[[], bool]
    should_hurry: Callable[[], bool] = lambda: (
        True
    )  # until then, bodies may take as long as they need after a stop
    idle_seconds: float = float("inf")  # it ends after this long without work
    takes_quarantined: TakesQuarantined = TakesQuarantined.WHEN_EMPTY
    relief: Relief | None = None  # without one, it is never replaced
    threads: int = SYNC_BODIES  # for sync bodies
    is_permanent: bool = False  # it belongs to a cluster, and writes its row of `engine_worker`
    keeps_time: bool = False  # runs periodic work
    membership: Membership = field(default_factory=Membership)  # in a cluster
    drain: Drain = field(default_factory=Drain)  # outlives a shift that lost its database


def run(terms: Terms) -> None:
    """Work until told to stop, until another worker has taken over, or until it was idle for long."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(_work(terms))
    finally:
        loop_end.close(loop)


async def _work(terms: Terms) -> None:
    failures, earlier, has_lost_it = 0, list[Bodies](), False
    while not terms.should_stop():
        shift = Shift(terms, earlier, has_lost_it=has_lost_it)
        try:
            await shift.work()
        except (WorkerLockLost, psycopg.Error, OSError) as error:
            log.warning("the shift lost its database: %s", error)
            has_lost_it = True
            if shift.is_leaving:
                return
            earlier = shift.bodies_left
            failures = 0 if shift.has_worked else failures + 1
            await asyncio.sleep(RECONNECT_SECONDS[min(failures, len(RECONNECT_SECONDS) - 1)])
        else:
            return


class Shift:
    """One shift, from taking its lock to its end."""

    def __init__(self, terms: Terms, earlier: Iterable[Bodies] = (), *, has_lost_it: bool = False) -> None:
        self.name = terms.name
        self.has_worked = False
        self._terms = terms
        self._should_stop = terms.should_stop
        self._earlier = earlier
        self._has_lost_it = has_lost_it  # its database: the shift before did
        self._loop = asyncio.get_running_loop()
        self._clock = DatabaseClock(lambda: self._host.rearm())
        self._slices = Slices()
        self._tally = Tally()
        self._bodies = Bodies(self._loop, self._clock.now_us, threads=terms.threads, tally=self._tally)
        self._retirement = Retirement(terms.relief, self._bodies, earlier=earlier)
        self._cycles: dict[int, Cycle] = {}
        self._connections: list[ShiftConnection] = []
        self._notices = Notices(lambda: self._reader)
        self._idle_memory = IdleMemory()

    @property
    def is_leaving(self) -> bool:
        """Return whether another worker replaces or has replaced this one."""
        return self._retirement.has_begun

    @property
    def bodies_left(self) -> list[Bodies]:
        """Return what still runs bodies in this process, for this shift and earlier ones."""
        return [bodies for bodies in (*self._earlier, self._bodies) if bodies.left]

    async def work(self) -> None:
        async with asyncio.timeout(lease_seconds()):
            self._worker_lock = await WorkerLock.take(self.name)
        heartbeat = Heartbeat(
            self._worker_lock.number, self._slices.allowance, lambda reason: worker_ends(self.name, reason)
        )
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._set_up()
            if self._terms.is_permanent:
                await self._beats.beat()  # before the first claim: its cluster may drain
            if self._has_lost_it:
                log.info("the shift has its database again")
            heartbeat.start()
            tasks += [self._loop.create_task(one) for one in self._activities(heartbeat)]
            await asyncio.wait([*tasks, self._worker_lock.lost], return_when=asyncio.FIRST_COMPLETED)
            for ended in (*tasks, self._worker_lock.lost):
                if ended.done():
                    await ended
        finally:
            heartbeat.stop()
            await self._stop(tasks)

    def _activities(self, heartbeat: Heartbeat) -> list[Coroutine[Any, Any, None]]:
        """Return the concurrent activities, the claims first. The shift ends with the first that ends."""
        parts = (self._journal, self._changes, self._parent_notices, self._notices)
        found = [
            self._claim_and_wait(),
            *(part.run() for part in parts),
            self._tick(heartbeat),
            self._count(),
        ]
        if self._terms.is_permanent:
            found += [self._look(), self._beats.run()]
        if self._terms.keeps_time:
            found.append(Periodic(self._reader, lambda: self._claimer.is_front).run())
        return found

    async def _set_up(self) -> None:
        """Open the connections and build the parts that use them."""
        worker_id = self._worker_lock.number
        claiming = await self._open("claims", is_durable=False)
        await self._worker_lock.check_session(claiming)
        self._reader = Reader(claiming, worker_id, self._clock)
        await self._reader.set_clock()
        self._changes = Changes(self._reader)
        self._parent_notices = ParentNotices(
            lambda: self._open("parents", is_durable=False), self._changes.add
        )
        writing = await self._open("journal")
        self._journal = Journal(
            writing, worker_id, self._clock, self._on_written, self._parent_notices.send, self._tally
        )
        self._host = CycleHost(
            self.name,
            self._cycles,
            clock=self._clock,
            slices=self._slices,
            bodies=self._bodies,
            reader=self._reader,
            journal=self._journal,
        )
        self._claimer = Claimer(
            self._host,
            self._reader,
            slots=self._terms.slots,
            takes_quarantined=self._terms.takes_quarantined,
            drain=self._terms.drain,
            on_changed=self._changes.add,
            on_notices=self._parent_notices.send,
            tally=self._tally,
        )
        self._beats = Beats(
            self._reader,
            self._terms.drain,
            self._terms.membership,
            name=self.name,
            slots=self._terms.slots,
            cycles=self._cycles,
            on_drain=self._claimer.woken.set,
        )
        self._worker_lock.listen(self._on_wake)

    async def _open(self, what: str, *, is_durable: bool = True) -> ShiftConnection:
        connection = await ShiftConnection.open(f"reprise {what} {self.name}", is_durable=is_durable)
        self._connections.append(connection)
        return connection

    async def _stop(self, tasks: list[asyncio.Task[None]]) -> None:
        """Stop everything. What could be released has left by now; the rest is abandoned."""
        for cycle in list(self._cycles.values()):
            cycle.exit.abandon()
        # First, because psycopg would ask the server to cancel what runs, and wait for a server that may not answer.
        for connection in self._connections:
            await connection.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._slices.close()
        self._bodies.stop()
        await self._worker_lock.leave()

    async def _claim_and_wait(self) -> None:
        """Claim until the shift has to end and holds nothing."""
        busy_at = time.monotonic()
        while not self._should_stop():
            claimed = await self._claimer.go_on()
            self.has_worked = self.has_worked or bool(claimed)
            self._idle_memory.claimed(claimed)
            if claimed or self._cycles:
                busy_at = time.monotonic()
            elif self._claimer.has_left or time.monotonic() - busy_at > self._terms.idle_seconds:
                break
            if not (claimed and self._claimer.has_backlog):
                await self._claimer.wait()
        await self._drain()
        await self._write_tally()
        if self._terms.is_permanent:
            await self._reader.leave()

    async def _count(self) -> None:
        while True:
            await asyncio.sleep(COUNT_SECONDS)
            await self._write_tally()

    async def _write_tally(self) -> None:
        sums = self._tally.take()
        if sums is not None:
            await self._reader.count(sums)

    async def _drain(self) -> None:
        """Stop claiming: for a while, let bodies end and be recorded, then release everything.

        The while begins when the shift has to hurry.
        """
        # Rows held without a cycle would look like those of a dead worker.
        await self._claimer.look_for_signals()
        for cycle in list(self._cycles.values()):
            cycle.exit.quiesce(InstanceStatus.QUEUED)
        while self._cycles and not self._terms.should_hurry():
            await self._claimer.look_for_signals()
            await asyncio.sleep(UNHURRIED_SECONDS)
        await self._until_empty(GRACE_SECONDS)
        await self._claimer.pass_on_places()
        for cycle in list(self._cycles.values()):
            cycle.exit.release()
        await self._until_empty(LAST_WRITES_SECONDS)

    async def _until_empty(self, seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        while self._cycles and time.monotonic() < ends_at:
            await (
                self._claimer.look_for_signals()
            )  # a body that outlives its instance must not delay the rest
            await asyncio.sleep(0.01)

    async def _look(self) -> None:
        """Find what a worker left without a notification: a whole machine may be gone."""
        had_orphans = False
        while True:
            await asyncio.sleep(RECONNECTED_SECONDS if had_orphans else LOOK_SECONDS)
            has_orphans, has_parent_notices = await self._reader.look()
            if has_orphans and had_orphans:
                self._on_wake(REAP)
            had_orphans = has_orphans and not had_orphans
            if has_parent_notices:
                self._parent_notices.send()

    async def _tick(self, heartbeat: Heartbeat) -> None:
        """Show that the loop moves, end the wait when the worker must stop, and detect a server that is silent."""
        patience = lease_seconds()
        ask_at = time.monotonic() + patience / 2
        while True:
            heartbeat.moved()
            heartbeat.holds = bool(self._cycles)
            if self._should_stop():
                self._claimer.woken.set()
            self._retire()
            self._idle_memory.look(held=len(self._cycles))
            if time.monotonic() > ask_at:
                ask_at = time.monotonic() + patience / 2
                self._worker_lock.ask()
            if self._waits_longer_than(patience):
                raise WorkerLockLost(f"no answer for {patience:g} s")
            await asyncio.sleep(TICK_SECONDS)

    def _retire(self) -> None:
        """Let another worker take over when it is time; until that is ready, this one continues to claim.

        A worker that drains stays: its successor would claim.
        """
        if self._terms.drain.is_on and not self._retirement.has_begun:
            return
        if not self._retirement.look() or self._claimer.is_leaving:
            return
        self._claimer.leave_soon()
        if self._retirement.trouble:
            self._loop.create_task(self._notices.worker_retired(self.name, self._retirement.trouble))

    def _waits_longer_than(self, seconds: float) -> bool:
        return self._worker_lock.waits_longer_than(seconds) or any(
            connection.waits_longer_than(seconds) for connection in self._connections
        )

    def _on_wake(self, payload: str) -> None:
        if payload == NOTICE:
            self._notices.look()
        elif payload == DRAIN:
            self._beats.soon()
        else:
            self._claimer.on_wake(payload, is_own=payload == str(self._worker_lock.number))

    def _on_written(self, cycles: list[Cycle]) -> None:
        self._changes.add(cycle.claimed.key for cycle in cycles)
