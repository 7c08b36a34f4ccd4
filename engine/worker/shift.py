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
from enum import StrEnum

import psycopg

from engine.registry import workflows
from engine.replay import leaving
from engine.replay.cycle import Cycle
from engine.replay.history import AttemptRecord, History
from engine.replay.host import Claimed, Phase
from engine.replay.operation import DoOperation
from engine.states import InstanceStatus
from engine.worker.attempt import Bodies
from engine.worker.changes import Changes
from engine.worker.clock import DatabaseClock
from engine.worker.heart import Heart, lease_seconds
from engine.worker.journal import Journal
from engine.worker.line import Line
from engine.worker.reader import Reader
from engine.worker.seat import Seat, SeatLost
from engine.worker.slices import Slices

log = logging.getLogger("engine.shift")

SWEEP_SECONDS = 5.0
AFTER_DEATH_SECONDS = 0.25  # until a second sweep, for what somebody held at the first
GRACE_SECONDS = 10.0
DRAIN_SECONDS = 60.0  # for a shift that ends of age
LAST_WRITES_SECONDS = 3.0
TICK_SECONDS = 0.25
LIGHT_SECONDS = 0.02  # after so long in async bodies only, an instance takes no slot
LIGHT_FACTOR = 8  # instances that a shift holds at most, in slots
ASK_AGAIN_SECONDS = 0.5
HANG_BACK_SECONDS = 0.01  # that a shift leaves what is due to the one at the front
QUIET_SECONDS = 0.01  # without a wake-up, before asking when the next is due
HELD_UP_SECONDS = 0.005  # before looking again for a row that is due, but that somebody holds
RECONNECT_SECONDS = (0.1, 0.2, 0.5, 1.0)


class Isolates(StrEnum):
    """Whether a shift takes the instances that must run alone.

    A shift in a cluster never does: one long body would keep it from all other work, and the cluster has a ward for
    them. Without a cluster it does when it has nothing else.
    """

    NEVER = "never"
    WHEN_EMPTY = "when_empty"
    ONLY = "only"


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


class Shift:
    """The host of its cycles (see `engine.replay.cycle.Host`)."""

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
        self.name = name
        self.has_worked = False
        self._slots = slots
        self._should_stop = should_stop
        self._idle_seconds = idle_seconds
        self._ends_at = ends_at
        self._isolates = isolates
        self._workflows = sorted(workflows)
        self._loop = asyncio.get_running_loop()
        self._clock = DatabaseClock()
        self._slices = Slices()
        self._bodies = Bodies(self._loop, self.now_us)
        self._cycles: dict[int, Cycle] = {}
        self._poked: set[Cycle] = set()
        self._alarms: dict[int, asyncio.TimerHandle] = {}
        self._isolating: Cycle | None = None
        self._given_up: dict[int, tuple[int, str]] = {}  # by instance: fence and reason
        self._woken = asyncio.Event()
        self._signalled = False
        self._sweep_at = 0.0  # at once
        self._somebody_died = False
        self._wants_isolated = False
        self._has_backlog = False
        self._is_front = False
        self._lines: list[Line] = []

    # The shift's own life

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
            self._journal = Journal(
                await self._open("journal"), self._seat.number, self._clock, self._on_written
            )
            heart.start()
            helpers = (self._journal.run(), self._changes.run(), self._tick(heart))
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

    async def _wait(self) -> None:
        """Wait for a wake-up, for the next due instance, or for the next sweep."""
        seconds = max(0.0, self._sweep_at - time.monotonic())
        if self._has_backlog:
            seconds = min(seconds, LIGHT_SECONDS)
        elif self._free_slots() > 0 and self._isolating is None and self._isolates is not Isolates.ONLY:
            if await self._is_woken_within(min(seconds, QUIET_SECONDS)):
                return  # whoever just claimed has better to do than to ask
            due_us = await self._reader.next_due(self._workflows)
            if due_us is not None:
                due_in = self._clock.seconds_until(due_us)
                mine_in = due_in or HELD_UP_SECONDS if self._is_front else due_in + HANG_BACK_SECONDS
                seconds = min(seconds, mine_in)
        await self._is_woken_within(seconds)

    async def _is_woken_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._woken.wait()
        except TimeoutError:
            return False

    async def _step_forward(self) -> None:
        """Be the one that claims at once, if nobody is: two that answer the same call get in each other's way."""
        if not self._is_front and self._isolates is not Isolates.ONLY:
            self._is_front = await self._reader.take_front(self._workflows)

    async def _sweep(self) -> None:
        """The net under every notification: reap, look for signals, look for isolated instances."""
        self._sweep_at = time.monotonic() + (AFTER_DEATH_SECONDS if self._somebody_died else SWEEP_SECONDS)
        self._somebody_died = False
        self._signalled = self._signalled or bool(self._cycles)
        self._wants_isolated = self._isolates is not Isolates.NEVER
        reaped = await self._reader.reap()
        if reaped:
            self._changes.add(reaped)
            await self._reader.notify_alone()
            self._woken.set()

    async def _claim(self) -> int:
        free = self._free_slots()
        if free <= 0 or self._isolating is not None:
            return 0
        if self._wants_isolated and not self._cycles:
            found = await self._reader.claim(self._workflows, 1, isolated=True)
            self._wants_isolated = bool(found)
            if found:
                self._take(found)
                self._isolating = self._cycles.get(found[0][0].key)
                return 1
        if self._isolates is Isolates.ONLY:
            return 0
        found = await self._reader.claim(self._workflows, free, isolated=False)
        self._has_backlog = len(found) == free
        self._take(found)
        return len(found)

    def _free_slots(self) -> int:
        """Count the slots: an instance that only awaits async bodies costs memory, no time, and takes none."""
        held = len(self._cycles)
        if held < self._slots or not self._has_backlog:
            return self._slots - held
        busy = sum(not self._bodies.only_awaits(cycle, LIGHT_SECONDS) for cycle in self._cycles.values())
        return min(self._slots - busy, self._slots * LIGHT_FACTOR - held)

    def _take(self, found: list[tuple[Claimed, History]]) -> None:
        self.has_worked = True
        for claimed, history in found:
            before = self._cycles.get(claimed.key)
            if before is not None:  # its lease ran out unnoticed, and the instance came back
                leaving.abandon(before)
            cycle = Cycle(self, workflows[claimed.workflow], claimed, history)
            self._cycles[claimed.key] = cycle
            cycle.begin()
        self._changes.add(claimed.key for claimed, _ in found)

    async def _look_for_signals(self) -> None:
        """Ask the rows what happened to what this seat holds: taken away, signalled, paused, or held for nothing."""
        self._signalled = False
        known = dict(self._cycles)
        held = await self._reader.held()
        for key, cycle in known.items():
            if cycle.phase in (Phase.LEAVING, Phase.LEFT) or self._cycles.get(key) is not cycle:
                continue
            fence, status, signals = held.get(key, (0, "", 0))
            if fence != cycle.claimed.fence:
                leaving.abandon(cycle)
            else:
                cycle.on_signals(status, signals)
        await self._let_go(
            {
                key: fence
                for key, (fence, *_) in held.items()
                if key not in known or fence > known[key].claimed.fence
            }
        )

    async def _let_go(self, strays: dict[int, int]) -> None:
        """Give back what this seat holds without a cycle, or pause it where the engine has given it up."""
        self._given_up = {key: why for key, why in self._given_up.items() if why[0] == strays.get(key)}
        if strays:
            found = await self._reader.let_go(
                {key: self._given_up.get(key, (fence, None)) for key, fence in strays.items()}
            )
            log.warning("let go of %s, which no cycle drives", sorted(found))
            self._signalled = len(found) < len(strays)  # somebody holds the others
            self._changes.add(found)
            self._woken.set()

    async def _drain(self) -> bool:
        """Claim no more: let bodies end and be recorded, then give everything back. Told to stop, insist on it.

        Where nothing but its age ends the shift, bodies that take long are left alone: tell whether any was.
        """
        if self._signalled:
            await (
                self._look_for_signals()
            )  # what is held for nothing would be taken for what a dead worker left
        for cycle in list(self._cycles.values()):
            leaving.freeze(cycle, InstanceStatus.QUEUED)
        await self._until_empty(GRACE_SECONDS if self._is_urgent() else DRAIN_SECONDS)
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

    # The host of cycles

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
            leaving.recover(cycle, error)

    def flush(self, cycle: Cycle) -> None:
        self._journal.flush(cycle)

    def call_at(self, cycle: Cycle, when_us: int) -> None:
        self._forget_alarm(cycle)
        seconds = self._clock.seconds_until(when_us)
        self._alarms[cycle.claimed.key] = self._loop.call_later(seconds, self.poke, cycle)

    def _forget_alarm(self, cycle: Cycle) -> None:
        alarm = self._alarms.pop(cycle.claimed.key, None)
        if alarm is not None:
            alarm.cancel()

    def run_body(self, cycle: Cycle, operation: DoOperation, attempt: AttemptRecord) -> None:
        self._bodies.run(cycle, operation, attempt)

    def cancel_body(self, cycle: Cycle, attempt: AttemptRecord) -> None:
        self._bodies.cancel(cycle, attempt)

    def ask_delay(
        self, cycle: Cycle, operation: DoOperation, attempt: AttemptRecord, error: BaseException
    ) -> None:
        self._bodies.ask_delay(cycle, operation, attempt, error)

    def read_events(self, cycle: Cycle) -> None:
        self._loop.create_task(self._read_events(cycle, cycle.signals))

    async def _read_events(self, cycle: Cycle, signals: int) -> None:
        try:
            page = await self._reader.events(cycle.claimed.key, cycle.inbox.question)
        except psycopg.Error:
            # The claims' connection is gone, and with it this shift. Or not: then the cycle parks only if asked again.
            self._loop.call_later(ASK_AGAIN_SECONDS, self.read_events, cycle)
            return
        cycle.on_events(page, signals)

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
        if self._isolating is cycle:
            self._isolating = None
            self._wants_isolated = True
            self._woken.set()
        elif self._has_backlog or not self._cycles:
            self._woken.set()

    def give_up(self, cycle: Cycle, reason: str) -> None:
        self._given_up[cycle.claimed.key] = cycle.claimed.fence, reason
        self._signalled = True
        self._woken.set()

    def progressed(self, cycle: Cycle) -> None:
        if self._isolating is cycle:
            leaving.freeze(cycle, InstanceStatus.QUEUED)
