"""What a shift claims, when it claims, and how it learns what others changed in the meantime."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

from engine.declare.registry import workflows
from engine.replay.cycle import Cycle
from engine.replay.host import Claimed
from engine.replay.records.history import History
from engine.steer.notify import DUE, PAUSE, QUARANTINE, REAP
from engine.values.states import InstanceStatus
from engine.worker.capacity import LIGHT_SECONDS, SATURATED_NEW_SECONDS, Capacity
from engine.worker.cycle_host import CycleHost
from engine.worker.database.limits import Limits
from engine.worker.database.reader import Reader
from engine.worker.drain import Drain
from engine.worker.held import Held
from engine.worker.quarantined import Quarantined, TakesQuarantined
from engine.worker.tally import Tally

log = logging.getLogger("engine.shift")

SWEEP_SECONDS = 5.0
AFTER_DEATH_SECONDS = 0.25  # until a second sweep, for rows that were locked at the first
HANG_BACK_SECONDS = 0.01  # for which a shift leaves due instances to the shift at the front
QUIET_SECONDS = 0.01  # without a wake-up, before asking when the next is due
HELD_UP_SECONDS = 0.005  # before looking again for a due row that is locked
LEAVE_SECONDS = 1.0  # for which a shift keeps claiming when another one is to replace it
PASS_ON_SECONDS = 0.05  # between two notifications to other shifts


MakeCycle = Callable[[CycleHost, Claimed, History], Cycle]


def make_cycle(host: CycleHost, claimed: Claimed, history: History) -> Cycle:
    return Cycle(host, workflows.served[claimed.workflow], claimed, history)


class Claimer:
    """Claims as many instances as there are slots for, and drops those that its worker no longer holds."""

    def __init__(
        self,
        host: CycleHost,
        reader: Reader,
        *,
        slots: int,
        takes_quarantined: TakesQuarantined,
        on_changed: Callable[[Iterable[int]], None],
        on_notices: Callable[[], None],
        make_cycle: MakeCycle = make_cycle,
        drain: Drain | None = None,
        tally: Tally | None = None,
    ) -> None:
        host.holder = self
        reader.on_reopened = self.on_reopened
        self.has_backlog = False
        self.has_signals = False  # a notification says that a held instance has changed
        self.is_front = False
        self.limits = Limits(workflows.served, workflows.limits())
        self.woken = asyncio.Event()
        self._host = host
        self._reader = reader
        self._capacity = Capacity(host, reader, slots)
        self._held = Held(host, reader)
        self._quarantined = Quarantined(host, reader, takes_quarantined)
        self._on_changed = on_changed
        self._on_notices = on_notices
        self._make_cycle = make_cycle
        self._drain = drain or Drain()
        self._tally = tally or Tally()
        self._loop = asyncio.get_running_loop()
        self._codes = workflows.codes_that_pause()
        self._waits_until = 0.0
        self._sweep_at = 0.0  # at once
        self._somebody_died = False
        self._has_freed = False  # capacity of a workflow with a limit
        self._has_parked = False  # an instance due before others look, which cannot be claimed here
        self._passed_on_at = float("-inf")
        self._leaves_at = float("inf")  # from then on it claims nothing: another shift has replaced it

    async def go_on(self) -> int:
        """Do what is due now: sweep, look for signals, claim. Return how many instances were claimed."""
        self.woken.clear()
        if time.monotonic() >= self._sweep_at:
            await self.sweep()
            await self._step_forward()
        await self.look_for_signals()
        claimed = await self.claim()
        if not self.claims:
            self._let_leave()
        return claimed

    @property
    def claims(self) -> bool:
        """Return whether it claims: it does not while it drains."""
        return not self.has_left and not self._drain.is_on

    @property
    def has_left(self) -> bool:
        """Return whether the shift that replaces it has started: this one claims nothing more."""
        return time.monotonic() >= self._leaves_at

    @property
    def is_leaving(self) -> bool:
        return self._leaves_at != float("inf")

    def leave_soon(self) -> None:
        """Stop claiming in a moment: another shift is to replace this one."""
        self._leaves_at = time.monotonic() + LEAVE_SECONDS
        self._loop.call_later(LEAVE_SECONDS, self.woken.set)

    def on_wake(self, payload: str, *, is_own: bool) -> None:
        """Handle a wake-up. One for this worker means that an instance it holds has changed."""
        if payload == REAP:
            self._sweep_at = 0.0
            self._somebody_died = True
        elif is_own or payload == PAUSE:
            self.has_signals = True
        elif payload == QUARANTINE and self._quarantined.is_only:
            self._quarantined.is_wanted = True
            self._loop.call_later(HANG_BACK_SECONDS * len(self._host.cycles), self.woken.set)
            return
        elif payload != DUE:
            return
        elif not self.is_front:
            self._loop.call_later(HANG_BACK_SECONDS, self.woken.set)
            return
        self.woken.set()

    def on_reopened(self) -> None:
        """Look at everything again: the connection for claims broke, and the answer to a claim may have been lost."""
        self.is_front = False  # its lock was lost with the connection
        self._sweep_at = 0.0
        self.has_signals = True
        self.woken.set()

    async def wait(self) -> None:
        """Wait for a wake-up, for the next due instance, or for the next sweep."""
        ends_at = self._sweep_at
        if self.has_backlog or self._has_parked:
            ends_at = min(ends_at, time.monotonic() + LIGHT_SECONDS)
        elif self._looks_for_due():
            # Right after a claim there is work to do; ask only once it is quiet.
            if await self._is_woken_before(min(ends_at, time.monotonic() + QUIET_SECONDS)):
                return
            ends_at = min(ends_at, await self._next_due_at())
        await self._is_woken_before(ends_at)

    def _looks_for_due(self) -> bool:
        return (
            self.claims
            and not self._quarantined.is_only
            and not self._quarantined.is_under_way
            and self._capacity.free_slots(has_backlog=self.has_backlog) > 0
        )

    async def _next_due_at(self) -> float:
        """Return when the next instance is due for this shift, on the monotonic clock."""
        self._capacity.leave_to_others()
        due_us = await self._reader.next_due(self.limits)
        if due_us is None:
            return float("inf")
        due_in = self._host.clock.seconds_until(due_us)
        if self._capacity.is_saturated:  # what is overdue is new
            return time.monotonic() + (due_in or SATURATED_NEW_SECONDS / 4)
        return time.monotonic() + (due_in or HELD_UP_SECONDS if self.is_front else due_in + HANG_BACK_SECONDS)

    async def _is_woken_before(self, ends_at: float) -> bool:
        self._waits_until = ends_at
        try:
            async with asyncio.timeout(max(ends_at - time.monotonic(), 0.0)):
                return await self.woken.wait()
        except TimeoutError:
            return False
        finally:
            self._waits_until = 0.0

    async def _step_forward(self) -> None:
        """Become the shift that claims at once, if there is none: two that answer one notification compete."""
        if not self.is_front and not self._quarantined.is_only and not self.has_left:
            self.is_front = await self._reader.take_front(sorted(workflows.served))

    async def sweep(self) -> None:
        """Do what notifications ask for, in case one was missed: reap, look for signals, quarantine and old code."""
        self._sweep_at = time.monotonic() + (AFTER_DEATH_SECONDS if self._somebody_died else SWEEP_SECONDS)
        self._somebody_died = False
        self.has_signals = self.has_signals or bool(self._host.cycles)
        self._quarantined.look_again()
        self._on_changed(await self._reader.follow_clock(sorted(workflows.served)))
        reaped = await self._reader.reap()
        if reaped:
            self._on_changed(reaped)
            await self._reader.notify_quarantine()
            self._has_freed = bool(self.limits)
            self._has_parked = True  # only other shifts may claim those that are not quarantined
            self.woken.set()
        if await self._reader.has_parent_notices():
            self._on_notices()
        if self._codes and not self._quarantined.is_only:
            self._on_changed(await self._reader.go_back(self._codes))
        if self.limits:
            self._on_changed(await self._reader.hold_back(self.limits))

    async def claim(self) -> int:
        """Claim due instances, as many as there are slots for. Return their number."""
        if self._has_freed or self._has_parked:
            await self._pass_on()
        if not self.claims:
            return 0
        if self._may_observe() and await self._claim_quarantined():
            return 1
        if self._quarantined.is_only or self._quarantined.is_under_way:
            return 0
        free = self._capacity.free_slots(has_backlog=self.has_backlog)
        if free <= 0:
            return 0
        found = await self._take_due(free)
        self.has_backlog = len(found) == free
        self.take(found)
        return len(found)

    def _may_observe(self) -> bool:
        return self._quarantined.is_wanted and self._quarantined.is_possible(
            is_saturated=self._capacity.is_saturated
        )

    async def _claim_quarantined(self) -> bool:
        """Claim a quarantined instance and observe it. Return whether there was one."""
        found = await self._take_due(1, quarantined=True)
        self._quarantined.is_wanted = bool(found)
        if found:
            await self._quarantined.run_beside()
            self.take(found)
            self._quarantined.observe(self._host.cycles.get(found[0][0].key))
        return bool(found)

    async def _take_due(self, limit: int, *, quarantined: bool = False) -> list[tuple[Claimed, History]]:
        self._capacity.leave_to_others()
        return await self._reader.claim(self.limits, limit, quarantined=quarantined)

    async def _pass_on(self) -> None:
        """Notify other shifts of what this one cannot claim: free capacity of a workflow, or an instance due soon."""
        if self._looks_for_due():
            self._has_freed = self._has_parked = False
        elif time.monotonic() >= self._passed_on_at + PASS_ON_SECONDS:
            self._passed_on_at = time.monotonic()
            self._has_freed = self._has_parked = False
            await self._reader.notify_wake()

    def take(self, found: list[tuple[Claimed, History]]) -> None:
        for claimed, history in found:
            before = self._host.cycles.get(claimed.key)
            if before is not None:  # its lease ran out unnoticed, and the instance came back
                before.exit.abandon()
            cycle = self._make_cycle(self._host, claimed, history)
            self._host.cycles[claimed.key] = cycle
            self._tally.claimed(claimed, history)
            cycle.begin()
        self._on_changed(claimed.key for claimed, _ in found)

    async def look_for_signals(self) -> None:
        """Look at the held rows if a notification says that one has changed."""
        if self.has_signals:
            await self.look_at_rows()

    async def look_at_rows(self) -> None:
        """Read what happened to held instances: taken away, signalled, paused, or held without a cycle."""
        self.has_signals = False
        await self.let_go(await self._held.look())

    async def let_go(self, strays: dict[int, int]) -> None:
        """Release instances that this worker holds without a cycle. Pause those that the engine has given up."""
        found = await self._held.let_go(strays)
        if strays:
            log.warning("let go of %s, which no cycle drives", sorted(found))
            self.has_signals = len(found) < len(strays)  # the rows of the others are locked
            self._on_changed(found)
            self._has_freed = bool(self.limits)
            self.woken.set()

    # Called by the host

    def left(self, cycle: Cycle) -> None:
        was_full = self._reader.memory.is_full
        self._reader.memory.forget(cycle.claimed)
        if was_full:
            self.woken.set()
        self._quarantined.left(cycle)
        if self._quarantined.is_wanted or self.has_backlog or not self._host.cycles:
            self.woken.set()
        if cycle.claimed.workflow in self.limits:
            self._has_freed = True
            self.woken.set()
        if cycle.exit.wakes_us is not None:
            self._look_in_time(cycle.exit.wakes_us)

    def _look_in_time(self, wakes_us: int) -> None:
        """Wake up in time for an instance that has just been parked, here or in another shift."""
        due_at = time.monotonic() + self._host.clock.seconds_until(wakes_us - self._reader.ahead_us)
        if due_at < self._waits_until:
            self.woken.set()
        if due_at < time.monotonic() + SWEEP_SECONDS and not self._looks_for_due():
            self._has_parked = True
            self.woken.set()

    def give_up(self, cycle: Cycle, reason: str) -> None:
        self._held.give_up(cycle, reason)
        self.has_signals = True
        self.woken.set()

    def cleared(self, cycle: Cycle) -> None:
        if self._quarantined.end(cycle):
            self.woken.set()
            self._loop.create_task(self._reader.clear(cycle.claimed))

    def rested(self, cycle: Cycle) -> None:
        if cycle.claimed.quarantined or not self.claims:
            cycle.exit.quiesce(InstanceStatus.QUEUED)  # it continues in another shift

    async def pass_on_places(self) -> None:
        """Notify other shifts of free capacity before this worker ends."""
        if self._has_freed:
            await self._reader.notify_wake()

    def _let_leave(self) -> None:
        """Release to other shifts the instances that have no running body here, or whose bodies never get a thread.

        If it drains, also the others, as soon as their running bodies have ended.
        """
        for cycle in list(self._host.cycles.values()):
            if self._host.bodies.waits_in_vain(cycle):
                cycle.exit.release()
            elif not cycle.exit.is_going and (self._drain.is_on or not cycle.steps.bodies):
                cycle.exit.quiesce(InstanceStatus.QUEUED)
