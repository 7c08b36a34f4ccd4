"""The worker of a test: it does what is due in the test's process, transaction and thread, and dies where told."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Iterable
from typing import Any

from engine.declare.registry import workflows
from engine.replay.cycle import Cycle
from engine.replay.host import Claimed
from engine.replay.records.history import History
from engine.testing.bare_worker import BareWorker
from engine.testing.bodies import InlineBodies
from engine.testing.clock import StandingClock
from engine.testing.connection import InlineConnection
from engine.testing.crashes import Crash, Crashes, Life
from engine.testing.loop import StandingLoop
from engine.testing.mocks import Mocks
from engine.testing.parts import (
    MortalJournal,
    PromptNotices,
    PromptParentNotices,
    UnlimitedSlices,
    WatchedCycle,
    mocked_handler,
)
from engine.worker.cycle_host import CycleHost
from engine.worker.database.reader import Reader

log = logging.getLogger("engine.testing")

NAME = "test"


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """What the test has prepared, for each of its workers."""

    clock: StandingClock
    mocks: Mocks
    crashes: Crashes
    always_replay: bool


class InlineWorker(BareWorker):
    """Exists for one `work`, and may die in it. It takes back what an earlier worker held when it died."""

    def __init__(self, setting: Setting) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, StandingLoop)
        super().__init__()
        self._loop = loop
        self.setting = setting
        self._life = Life()
        self.died_of: Crash | None = None
        self.stopped_by: BaseException | None = None
        connection: Any = InlineConnection(loop, setting.clock, self._life)
        writing: Any = InlineConnection(loop, setting.clock, self._life, guards=True)
        reader = Reader(connection, self.worker_id, setting.clock)
        reader.ahead_seconds = 0.0  # the clock stands at its due time
        self.parent_notices = PromptParentNotices(connection)
        self._notices = PromptNotices(lambda: reader, loop)
        journal = MortalJournal(
            writing,
            self.worker_id,
            setting.clock,
            self.on_written,
            self.parent_notices.send,
            crashes=setting.crashes,
            die=self.die,
        )
        self._assemble(
            NAME,
            reader,
            journal,
            clock=setting.clock,
            bodies=self._make_bodies(),
            slices=UnlimitedSlices(self.stop),
            on_notices=self.parent_notices.send,
        )

    async def work(self) -> None:
        """Drive everything that is due until nothing is held, or until this worker dies."""
        writing = asyncio.create_task(self._journal.run())
        writing.add_done_callback(lambda _: self._wake())
        try:
            await self._claimer.sweep()
            while not (self._life.is_over or writing.done()) and await self._go_on():
                await self._claimer.woken.wait()
                self._claimer.woken.clear()
        finally:
            await self._end(writing)
        if self.stopped_by is not None:
            raise self.stopped_by

    async def _go_on(self) -> bool:
        """Claim and settle what there is. Return whether there is anything to wait for."""
        await self._claimer.look_for_signals()
        claimed = await self._claimer.claim()
        settled = await self.parent_notices.settle()
        if claimed or settled:
            self._wake()
        elif self._host.cycles:
            await self._set_alarm()
        elif await self._notices.settle():
            self._wake()  # receivers may have started something
            return True
        return bool(claimed or settled or self._host.cycles)

    async def _set_alarm(self) -> None:
        """Look again when the next instance is due, if that is before the running bodies end."""
        due_us = await self._reader.next_due(self._claimer.limits)
        if due_us is not None:
            self._loop.call_later(self.setting.clock.seconds_until(due_us), self._wake)

    def _wake(self) -> None:
        self._claimer.woken.set()

    async def _end(self, writing: asyncio.Task[None]) -> None:
        """Stop everything. What is held is lost with this worker."""
        self._life.is_over = True
        for cycle in list(self._host.cycles.values()):
            cycle.exit.abandon()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        self._bodies.stop()
        if writing.done() and not writing.cancelled() and (error := writing.exception()) is not None:
            raise error
        for one in found:
            if isinstance(one, Exception):
                log.debug("a task of the worker ended in an error", exc_info=one)

    # Early ends

    def die(self, crash: Crash) -> None:
        """Simulate a kill: what is not recorded is lost."""
        crash.has_come = True
        self.died_of = crash
        self._life.is_over = True
        self._wake()

    def stop(self, error: BaseException) -> None:
        """Pass an error to the test, and not to the instance."""
        self.stopped_by = self.stopped_by or error
        self._life.is_over = True
        self._wake()

    def look(self) -> None:
        """Look for changes to held instances, which a shift learns from notifications."""
        if self._host.cycles:
            self._claimer.has_signals = True
            self._wake()

    # Its parts

    def _make_bodies(self) -> InlineBodies:
        return InlineBodies(
            self._loop,
            self.setting.clock.now_us,
            self.setting.mocks,
            self.setting.crashes,
            die=self.die,
            stop=self.stop,
            look=self.look,
        )

    def _make_cycle(self, host: CycleHost, claimed: Claimed, history: History) -> Cycle:
        workflow = workflows.served[claimed.workflow]
        mock = self.setting.mocks.of_workflow(claimed.workflow)
        if mock is not None:
            workflow = dataclasses.replace(workflow, handler=mocked_handler(mock))
        if not self.setting.always_replay:
            return Cycle(host, workflow, claimed, history)
        cycle = WatchedCycle(host, workflow, claimed, history)
        cycle.on_astray = self.stop
        return cycle

    def on_written(self, cycles: Iterable[Cycle]) -> None:
        self._wake()  # there may be a child or a released instance to claim
