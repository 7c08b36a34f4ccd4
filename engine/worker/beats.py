"""The heartbeat that people see: the shift writes its row every few seconds, and reads back whether it drains."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from engine.declare.registry import workflows
from engine.worker.database.reader import Reader
from engine.worker.drain import Drain
from engine.worker.membership import Membership

log = logging.getLogger("engine.shift")

BEAT_SECONDS = 5.0


class Beats:
    """Writes the row of one shift."""

    def __init__(
        self,
        reader: Reader,
        drain: Drain,
        membership: Membership,
        *,
        name: str,
        slots: int,
        cycles: Mapping[int, object],
        on_drain: Callable[[], None],
    ) -> None:
        self._reader = reader
        self._drain = drain
        self._membership = membership
        self._name = name
        self._slots = slots
        self._cycles = cycles
        self._on_drain = on_drain
        self._soon = asyncio.Event()

    def soon(self) -> None:
        """Beat at once: the row may say something new."""
        self._soon.set()

    async def run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(BEAT_SECONDS):
                    await self._soon.wait()
            except TimeoutError:
                pass
            self._soon.clear()
            await self.beat()

    async def beat(self) -> None:
        row = await self._reader.beat(
            {
                "name": self._name,
                "workflows": sorted(workflows),
                "slots": self._slots,
                "held": len(self._cycles),
                **self._membership.values(),
                **self._drain.values(),
            }
        )
        if self._drain.learn(row):
            log.info(
                "This worker drains: it claims nothing." if self._drain.is_on else "This worker claims again."
            )
            self._on_drain()
