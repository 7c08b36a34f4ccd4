"""Report failures in the test's own thread, before `run` returns."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from engine.testing.autocommit import as_if_committed, statements_on_their_own
from engine.testing.bodies import OF_THE_ENGINE
from engine.testing.loop import StandingLoop
from engine.worker.database.reader import Reader
from engine.worker.notices import Notices
from engine.worker.side_thread import SideThread, log


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
