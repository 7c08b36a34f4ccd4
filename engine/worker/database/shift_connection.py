"""A connection of a shift that is opened again when it breaks: what the shift holds depends only on its lock."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import psycopg

from engine.worker.database import sql
from engine.worker.database.connect import Connection, connect
from engine.worker.database.heartbeat import lease_seconds

log = logging.getLogger("engine.connection")

# Before the first tries; the connection of the lock notices sooner that the server is gone.
PAUSES_SECONDS = (0.0, 0.1, 0.2, 0.5)
LAST_PAUSE_SECONDS = 1.0
TRY_SECONDS = 8.0
END_MILLISECONDS = 5_000
SESSION_ENDS = "57P"  # SQLSTATEs: by an administrator, a crash, a shutdown


class ShiftConnection:
    """Executes statements on a connection of its own."""

    def __init__(self, name: str, connection: Connection, *, is_durable: bool) -> None:
        self._name = name
        self._is_durable = is_durable
        self._is_wanted = True
        self._use(connection)

    @classmethod
    async def open(cls, name: str, *, is_durable: bool = True) -> ShiftConnection:
        """Open it. Raises psycopg.OperationalError if the database does not answer."""
        name = name[:63]  # PostgreSQL keeps this much of it, and it is compared below
        return cls(name, await connect(name, is_durable=is_durable), is_durable=is_durable)

    async def close(self) -> None:
        self._is_wanted = False
        await self._connection.close()

    def waits_longer_than(self, seconds: float) -> bool:
        return self._connection.waits_longer_than(seconds)

    async def execute(
        self, statement: str, parameters: Any = None, *, prepare: bool = True
    ) -> psycopg.AsyncCursor[Any]:
        return await self._connection.execute(statement, parameters, prepare=prepare)

    async def fetch(self, statement: str, parameters: Mapping[str, object]) -> list[tuple[Any, ...]]:
        """Execute a statement that steps wait for, and return its rows."""
        return await self._connection.fetch(statement, parameters)

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Run the statements of the block in one transaction."""
        return self._connection.transaction()

    def is_lost(self, error: Exception) -> bool:
        """Return whether this error of a statement means that the connection is gone or about to close."""
        state = error.sqlstate if isinstance(error, psycopg.Error) else None
        return self._is_wanted and (self._connection.closed or (state or "").startswith(SESSION_ENDS))

    async def reopen(self) -> None:
        """Open it again, and end the old session.

        Statements sent over the old session have then taken effect, or never will. Tries for the length of a lease:
        while the session of the lock lives, so does the server, and it accepts connections again soon. Raises
        psycopg.OperationalError after that.
        """
        await self._connection.close()
        ends_at = time.monotonic() + lease_seconds()
        for pause in itertools.chain(PAUSES_SECONDS, itertools.repeat(LAST_PAUSE_SECONDS)):
            await asyncio.sleep(pause)
            try:
                await self._try()
                return
            except psycopg.OperationalError as error:
                if not self._is_wanted or time.monotonic() > ends_at:
                    raise
                log.warning("%s cannot be opened yet: %s", self._name, error)

    async def _try(self) -> None:
        try:
            async with asyncio.timeout(TRY_SECONDS):
                opened = await connect(self._name, is_durable=self._is_durable)
                await self._end_session(opened)
        except TimeoutError as error:
            raise psycopg.OperationalError(f"{self._name} cannot be opened in time") from error
        self._use(opened)
        log.info("%s has been opened again", self._name)

    async def _end_session(self, opened: Connection) -> None:
        before = {"pid": self._backend, "name": self._name, "wait": END_MILLISECONDS}
        try:
            found = await (await opened.execute(sql.END_SESSION, before)).fetchall()
        except BaseException:
            await opened.close()
            raise
        if found == [(False,)]:
            await opened.close()
            raise psycopg.OperationalError(f"the session of {self._name} does not end")

    def _use(self, connection: Connection) -> None:
        self._connection = connection
        self._backend = connection.info.backend_pid
