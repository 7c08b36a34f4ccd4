"""Working off what ended instances owe to others (see `engine.kin`), beside a shift's other work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg

from engine import kin
from engine.worker.line import Line

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 1.0  # seconds

log = logging.getLogger("engine.kin")


class Debts:
    """Pays when told to, on a connection of its own that is opened when there is something to pay for the first time.

    What cannot be paid yet, because somebody holds the row, is tried again soon; the sweeps see to the rest.
    """

    def __init__(
        self, open_line: Callable[[], Awaitable[Line]], on_changed: Callable[[list[int]], None]
    ) -> None:
        self._open_line = open_line
        self._on_changed = on_changed
        self._wanted = asyncio.Event()

    def pay(self) -> None:
        """Pay soon, also what comes to be owed until then."""
        self._wanted.set()

    async def run(self) -> None:
        await self._wanted.wait()
        line = await self._open_line()
        pause = FIRST_PAUSE
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._pay(line)
                pause = await self._pause_if_owed(line, pause)
            except psycopg.Error as error:
                log.warning("what ended instances owe could not be paid and is tried again: %s", error)
                if line.is_lost(error):
                    await line.reopen()
                    self._wanted.set()

    async def _pause_if_owed(self, line: Line, pause: float) -> float:
        """Try again soon if something is left, which somebody held: a flush does so for milliseconds."""
        [(is_left,)] = await _ask(line, kin.OWED)
        if not is_left:
            return FIRST_PAUSE
        await asyncio.sleep(pause)
        self._wanted.set()
        return min(pause * 2, LONGEST_PAUSE)

    async def _pay(self, line: Line) -> None:
        while True:
            # Parents first: what ends here owes to its own children.
            while await self._end_orphans(line):
                continue
            told = await _ask(line, kin.TELL_WAITERS)
            settled = await _ask(line, kin.SETTLE)
            self._on_changed([key for key, *_ in (*told, *settled)])
            if len(settled) < kin.AT_ONCE and len(told) < kin.AT_ONCE:
                return

    async def _end_orphans(self, line: Line) -> int:
        async with line.transaction():
            keys = [key for (key,) in await _ask(line, kin.ORPHANS)]
            if keys:
                await _ask(line, kin.END_ORPHANS, keys=keys)
        self._on_changed(keys)
        return len(keys)


async def _ask(line: Line, statement: str, **values: Any) -> list[tuple[Any, ...]]:
    cursor = await line.execute(statement, {"limit": kin.AT_ONCE, "only": None, **values})
    return await cursor.fetchall()
