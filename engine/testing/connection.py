"""A worker's connection that uses the connection of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import psycopg
from django.db import connection

from engine.testing.clock import StandingClock
from engine.testing.crashes import Life
from engine.testing.loop import StandingLoop


class Answer:
    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = rows

    async def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows


class InlineConnection:
    """Replaces `engine.worker.database.shift_connection.ShiftConnection`. It is silent once its worker has died.

    With `guards`, a statement that the database refuses does not break the test's transaction.
    """

    def __init__(self, loop: StandingLoop, clock: StandingClock, life: Life, *, guards: bool = False) -> None:
        self._loop = loop
        self._clock = clock
        self._life = life
        self._guards = guards

    async def execute(self, statement: str, parameters: Any = None) -> Answer:
        if self._life.is_over:
            await asyncio.Event().wait()
        with self._loop.suspended():
            return Answer(self._execute(self._clock.put_into(statement), parameters))

    async def fetch(self, statement: str, parameters: Any) -> list[tuple[Any, ...]]:
        return await (await self.execute(statement, parameters)).fetchall()

    def _execute(self, statement: str, parameters: Any) -> list[tuple[Any, ...]]:
        real = _connection()
        with real.transaction() if self._guards else nullcontext():
            cursor = psycopg.Cursor(real)
            cursor.execute(statement, parameters, prepare=False)
            return cursor.fetchall() if cursor.description else []

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        with _connection(self._loop).transaction():
            yield

    def is_lost(self, error: Exception) -> bool:
        return False


def _connection(loop: StandingLoop | None = None) -> psycopg.Connection[Any]:
    if loop is not None:
        with loop.suspended():
            return _connection()
    connection.ensure_connection()
    real: psycopg.Connection[Any] = connection.connection
    return real
