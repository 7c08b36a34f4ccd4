"""The parts of a test's worker that replace parts of a shift."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from engine.replay.cycle import Cycle
from engine.replay.records.history import StepRecord
from engine.replay.records.writes import Writes
from engine.testing.bodies import OF_THE_ENGINE, as_if_committed, statements_on_their_own
from engine.testing.crashes import Crash, Crashes
from engine.testing.errors import NonDeterministicHandlerError
from engine.testing.loop import StandingLoop
from engine.testing.mocks import Mock
from engine.values.identity import TOP
from engine.values.states import InstanceStatus
from engine.worker.database.journal import Journal
from engine.worker.database.reader import Reader
from engine.worker.database.rows import Answer
from engine.worker.notices import Notices
from engine.worker.parent_notices import ParentNotices
from engine.worker.side_thread import SideThread, log


class MortalJournal(Journal):
    """A journal that dies with its worker, where the test requests it."""

    def __init__(self, *args: Any, crashes: Crashes, die: Callable[[Crash], None]) -> None:
        super().__init__(*args)
        self._crashes = crashes
        self._die = die

    async def _execute(self, batch: list[tuple[Cycle, Writes]]) -> dict[int, Answer]:
        crash = self._crashes.at_flush(batch)
        if crash is not None:
            self._die(crash)
        return await super()._execute(batch)


class PromptParentNotices(ParentNotices):
    """Sends notices at once."""

    def __init__(self, connection: Any) -> None:
        super().__init__(_no_connection, lambda keys: None)
        self._connection = connection
        self._is_wanted = True

    def send(self) -> None:
        self._is_wanted = True

    async def settle(self) -> bool:
        """Send all pending notices. Return whether there were any."""
        if not self._is_wanted:
            return False
        self._is_wanted = False
        while await self._send(self._connection):
            continue
        return True


async def _no_connection() -> Any:
    raise AssertionError("a test's worker opens no connection")


class UnlimitedSlices:
    """Replaces `engine.worker.bodies.slices.Slices`, without its timer, which the test runner may use."""

    def __init__(self, stop: Callable[[BaseException], None]) -> None:
        self._stop = stop

    def drive(self, cycle: Cycle) -> None:
        cycle.loop.drain()
        main = cycle.main
        if main is not None and main.done() and not main.cancelled():
            error = main.exception()
            if error is not None and not isinstance(error, OF_THE_ENGINE):
                self._stop(error)

    def shut(self, cycle: Cycle) -> None:
        cycle.loop.shut()

    def forget(self, cycle: Cycle) -> None:
        """Do nothing: nothing is kept."""


class ForgetfulCycle(Cycle):
    """Leaves at every outcome, so that each reaches the handler by a replay."""

    def _deliver_arrived(self) -> bool:
        if not self.deliveries.arrived or self.steps.bodies or self.steps.asking or self.events.is_reading:
            return super()._deliver_arrived()
        self.exit.quiesce(InstanceStatus.QUEUED)
        return True


class WatchedCycle(ForgetfulCycle):
    """Ends the test if a replay differs from what is recorded."""

    on_astray: Callable[[BaseException], None]

    def _start_fresh(self) -> bool:
        self._check()
        return super()._start_fresh()

    def _has_ended(self) -> bool:
        if self.exit.decision.is_by_handler:
            self._check()
        return super()._has_ended()

    def _check(self) -> None:
        """Check that everything recorded has been called again: the handler has received every recorded outcome."""
        entered = self.deliveries.entered
        missing = [
            _shown(record)
            for identity, record in self.history.steps.items()
            if record.is_recorded and record.parent == TOP and identity not in entered
        ]
        if missing:
            instead = [_shown(one.record) for one in self.deliveries.fresh if not one.record.is_recorded]
            name = f"{self.workflow.name}/{self.claimed.id}"
            self.on_astray(NonDeterministicHandlerError(name, missing, instead))


def _shown(record: StepRecord) -> str:
    return f'"{record.name}"' if record.count == 1 else f'"{record.name}" #{record.count}'


def mocked_handler(mock: Mock) -> Any:
    async def handler(step: Any, *args: Any) -> Any:
        return mock.outcome()(*args)

    return handler


class InlineSideThread(SideThread):
    """Makes the calls in the test's own thread, on its connection."""

    def __init__(self, loop: StandingLoop) -> None:
        super().__init__()
        self._standing = loop

    async def call(self, function: Callable[[], object], *, key: Hashable = 0, name: str = "") -> bool:
        try:
            with self._standing.suspended(), statements_on_their_own(), as_if_committed():
                function()
        except OF_THE_ENGINE:
            log.exception("%s failed", name)
        return True


class PromptNotices(Notices):
    """Reports at once."""

    def __init__(self, reader: Callable[[], Reader], loop: StandingLoop) -> None:
        self._standing = loop
        super().__init__(reader)

    def _make_side_thread(self) -> SideThread:
        return InlineSideThread(self._standing)

    def _close_connections(self) -> None:
        """Do nothing: it is the test's connection."""

    async def settle(self) -> bool:
        """Report everything pending. Return whether anything was reported. Notices left to others stay."""
        has_told = False
        if await self._is_any():
            while await self.write_some() or await self.send_some():
                has_told = True
        return has_told
