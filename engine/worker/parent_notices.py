"""Send the pending notices of ended instances (see `engine.steer.relations`), next to a shift's other work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg

from engine.steer import relations
from engine.worker.database.line import Line
from engine.worker.database.transient import until_answered

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 1.0  # seconds

log = logging.getLogger("engine.steer.relations")


class ParentNotices:
    """Sends on request, on a connection of its own that is opened for the first notice.

    A notice that cannot be sent because another session holds the row is retried soon: a flush holds it for
    milliseconds. Sweeps handle the rest.
    """

    def __init__(
        self, open_line: Callable[[], Awaitable[Line]], on_changed: Callable[[list[int]], None]
    ) -> None:
        self._open_line = open_line
        self._on_changed = on_changed
        self._wanted = asyncio.Event()
        self._pause = FIRST_PAUSE

    def send(self) -> None:
        """Soon send what is pending, and what becomes pending until then."""
        self._wanted.set()

    async def run(self) -> None:
        await self._wanted.wait()
        line = await self._open()
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                is_left = await until_answered(line, lambda: self._send(line))
            except psycopg.Error:
                log.exception("notices of ended instances are left to the next sweep")
                is_left = False
            if is_left:
                await asyncio.sleep(self._pause)
                self._pause = min(self._pause * 2, LONGEST_PAUSE)
                self._wanted.set()

    async def _open(self) -> Line:
        while True:
            try:
                return await self._open_line()
            except (
                psycopg.OperationalError
            ) as error:  # no connection is free: the instances of this shift do not need this one
                log.warning("no connection for the notices of ended instances: %s", error)
                await asyncio.sleep(LONGEST_PAUSE)

    async def _send(self, line: Line) -> bool:
        """Send what can be sent. Return whether anything is left."""
        # First, because a parent waits, and most ended instances concern no other.
        if not await self._settle(line):
            return False
        while await self._end_orphans(line):
            continue
        self._changed(await _ask(line, relations.TELL_WAITERS))
        return await self._settle(line)

    async def _settle(self, line: Line) -> bool:
        self._changed(await _ask(line, relations.SETTLE))
        [(is_left,)] = await _ask(line, relations.PENDING)
        return bool(is_left)

    async def _end_orphans(self, line: Line) -> bool:
        """End the children of marked instances, which marks the children."""
        async with line.transaction():
            orphans = await _ask(line, relations.ORPHANS)
            if orphans:
                await _ask(line, relations.END_ORPHANS, keys=[key for (key,) in orphans])
        self._changed(orphans)
        return bool(orphans)

    def _changed(self, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            self._pause = FIRST_PAUSE
            self._on_changed([key for key, *_ in rows])


async def _ask(line: Line, statement: str, **values: Any) -> list[tuple[Any, ...]]:
    cursor = await line.execute(statement, {"limit": relations.AT_ONCE, "only": None, **values})
    return await cursor.fetchall()
