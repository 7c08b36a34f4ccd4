"""From PostgreSQL to open pages: one LISTEN connection a process, started with the first socket.

A notification says that something changed, never what: lost and merged ones cost nothing, and what a browser gets is
read from the database for the person it goes to. A page that (re)connects gets a snapshot, so nothing is only on the
wire.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django.db import connections

log = logging.getLogger("studio.live")

CHANNEL = "engine_changed"
EVERYTHING = "*"
LONGEST_WAIT_S = 5.0

Listener = Callable[[frozenset[int] | None], None]  # the instance keys that changed; None for "whatever"


class Hub:
    """The fan-out of one event loop."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self._versions: dict[int, int] = {}
        self._any = 0

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` at each change, from the loop; it must only take note."""
        self._listeners.add(listener)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen(), name="studio-live")

    async def unsubscribe(self, listener: Listener) -> None:
        self._listeners.discard(listener)
        if not self._listeners and self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self._versions.clear()

    def version(self, key: int | None) -> tuple[int, int]:
        """Give a number that rises with each change of an instance, or of anything. What was rendered at one is good
        until the next."""
        return self._any, self._versions.get(key, 0) if key is not None else 0

    def tell(self, keys: frozenset[int] | None) -> None:
        """Pass on that these instances changed; None when it is not known which."""
        self._any += 1
        if keys is None or len(self._versions) > 50_000:
            self._versions.clear()
        for key in keys or ():
            self._versions[key] = self._any
        for listener in tuple(self._listeners):
            listener(keys)

    async def _listen(self) -> None:
        wait = 0.1
        while True:
            try:
                async with await connect() as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    wait = 0.1
                    self.tell(None)  # whatever happened while nobody listened
                    async for notice in connection.notifies():
                        self.tell(changed_keys(notice.payload))
            except (psycopg.Error, OSError) as error:
                log.warning(
                    "Not listening for changes (%s); trying again in %.1f s", type(error).__name__, wait
                )
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT_S)


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """Give the hub of the running loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())


def changed_keys(payload: str) -> frozenset[int] | None:
    """Read a notification: instance keys separated by commas, or `*`."""
    try:
        return frozenset(int(part) for part in payload.split(",")) if payload != EVERYTHING else None
    except ValueError:
        return None


async def connect() -> psycopg.AsyncConnection[Any]:
    """Open a connection outside Django's: it stays in LISTEN for the life of the process."""
    params = connections["default"].get_connection_params()
    wanted = ("host", "port", "user", "password", "dbname", "sslmode", "sslrootcert", "sslcert", "sslkey")
    return await psycopg.AsyncConnection.connect(
        **{name: params[name] for name in wanted if params.get(name)},
        autocommit=True,
        connect_timeout=5,
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=3,
        application_name="reprise studio live",
    )
