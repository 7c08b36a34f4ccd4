"""Transient database errors: the caller retries and keeps what it holds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import psycopg

log = logging.getLogger("engine.connection")

# Classes of SQLSTATE about the server's state, not the data: conflicts, resources, locks, operators, files.
CLASSES = ("40", "53", "55", "57", "58")
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0  # seconds

R = TypeVar("R")


class Reopening(Protocol):
    """A connection that can be opened again; see `engine.worker.database.shift_connection.ShiftConnection`."""

    def is_lost(self, error: Exception) -> bool: ...
    async def reopen(self) -> None: ...


def is_transient(error: Exception) -> bool:
    """Return whether the same statement may succeed later: not if the error concerns its data."""
    state = error.sqlstate if isinstance(error, psycopg.Error) else ""
    return state is None or state[:2] in CLASSES


async def until_answered(
    connection: Reopening, ask: Callable[[], Awaitable[R]], on_reopened: Callable[[], None] = lambda: None
) -> R:
    """Execute until there is an answer: over a new connection if the old one broke, and again after transient errors.

    `on_reopened` is called when an answer may have been lost. Raises any other error.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return await ask()
        except psycopg.Error as error:
            if connection.is_lost(error):
                log.warning("a connection was lost: %s", error)
                await connection.reopen()
                on_reopened()
                continue
            if error.sqlstate is None or not is_transient(error):
                raise
            log.warning("a statement failed and is tried again: %s", error)
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
