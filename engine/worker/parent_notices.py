"""Send the pending notices of ended instances (see `engine.steer.relations`), next to a shift's other work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg

from engine.steer import relations
from engine.worker.database.shift_connection import ShiftConnection
from engine.worker.database.transient import until_answered

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 1.0  # seconds

log = logging.getLogger("engine.steer.relations")


class ParentNotices:
    """Sends on request, on a connection of its own that is opened for the first notice.

    A notice that cannot be sent because another session holds the row is retried soon: a flush holds it for
    milliseconds. Sweeps handle the rest.
    """

    def __init__(
        self,
        open_connection: Callable[[], Awaitable[ShiftConnection]],
        on_changed: Callable[[list[int]], None],
    ) -> None:
        self._open_connection = open_connection
        self._on_changed = on_changed
        self._wanted = asyncio.Event()
        self._pause = FIRST_PAUSE

    def send(self) -> None:
        """Soon send what is pending, and what becomes pending until then."""
        self._wanted.set()

    async def run(self) -> None:
        await self._wanted.wait()
        connection = await self._open()
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                is_left = await until_answered(connection, lambda: self._send(connection))
            except psycopg.Error:
                log.exception("notices of ended instances are left to the next sweep")
                is_left = False
            if is_left:
                await asyncio.sleep(self._pause)
                self._pause = min(self._pause * 2, LONGEST_PAUSE)
                self._wanted.set()

    async def _open(self) -> ShiftConnection:
        while True:
            try:
                return await self._open_connection()
            except (
                psycopg.OperationalError
            ) as error:  # no connection is free: the instances of this shift do not need this one
                log.warning("no connection for the notices of ended instances: %s", error)
                await asyncio.sleep(LONGEST_PAUSE)

    async def _send(self, connection: ShiftConnection) -> bool:
        """Send what can be sent. Return whether anything is left."""
        # First, because a parent waits, and most ended instances concern no other.
        if not await self._settle(connection):
            return False
        while await self._end_orphans(connection):
            continue
        self._changed(await _ask(connection, relations.TELL_WAITERS))
        return await self._settle(connection)

    async def _settle(self, connection: ShiftConnection) -> bool:
        self._changed(await _ask(connection, relations.SETTLE))
        [(is_left,)] = await _ask(connection, relations.PENDING)
        return bool(is_left)

    async def _end_orphans(self, connection: ShiftConnection) -> bool:
        """End the children of marked instances, which marks the children."""
        async with connection.transaction():
            orphans = await _ask(connection, relations.ORPHANS)
            if orphans:
                await _ask(connection, relations.END_ORPHANS, keys=[key for (key,) in orphans])
        self._changed(orphans)
        return bool(orphans)

    def _changed(self, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            self._pause = FIRST_PAUSE
            self._on_changed([key for key, *_ in rows])


async def _ask(connection: ShiftConnection, statement: str, **values: Any) -> list[tuple[Any, ...]]:
    cursor = await connection.execute(statement, {"limit": relations.AT_ONCE, "only": None, **values})
    return await cursor.fetchall()
