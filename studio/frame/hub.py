"""Pass changes from PostgreSQL to open pages, with one LISTEN connection per process.

The first socket opens the connection. A notification says that something changed, never what: losing or merging some
does no harm, and what a browser gets is read from the database for its user. A page that (re)connects gets a snapshot.
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
NO_INSTANCE = ""
LONGEST_WAIT_S = 5.0

Listener = Callable[[frozenset[int] | None], None]  # the instances that changed, if any; None for "whatever"


class Hub:
    """Passes changes on to the listeners of one event loop."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self.changes = 0  # so far: what was rendered at a number is valid until the next one

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` at each change, from the loop. It must return immediately."""
        self._listeners.add(listener)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen(), name="studio-live")

    async def unsubscribe(self, listener: Listener) -> None:
        self._listeners.discard(listener)
        if not self._listeners and self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def tell(self, keys: frozenset[int] | None) -> None:
        """Report that these instances changed, or something else if there are none; None if it is unknown what."""
        self.changes += 1
        for listener in tuple(self._listeners):
            listener(keys)

    async def _listen(self) -> None:
        wait = 0.1
        while True:
            try:
                async with await connect() as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    wait = 0.1
                    self.tell(None)  # for changes while nobody listened
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
    """Return the hub of the running loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())


def changed_keys(payload: str) -> frozenset[int] | None:
    """Read a notification: instance keys separated by commas, nothing for what belongs to no instance, or `*`."""
    if payload == NO_INSTANCE:
        return frozenset()
    try:
        return frozenset(int(part) for part in payload.split(",")) if payload != EVERYTHING else None
    except ValueError:
        return None


async def connect() -> psycopg.AsyncConnection[Any]:
    """Open a connection outside Django's pool, to keep it in LISTEN."""
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
