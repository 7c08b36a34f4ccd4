"""Report failures: rows of `engine_notice`, written with the failure, go to the log and to receivers.

Two loops run next to a shift's other work. One writes the log; the other calls the receivers of signals, and may lag
behind if these are slow. A row is taken for the length of a lease, reported and deleted: if this process dies in
between, another one reports it again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import psycopg
from django.db import Error, connection, connections

from engine.declare.registry import workflows
from engine.models import Notice
from engine.signals import SIGNALS
from engine.status import notice_text as notices
from engine.worker.database.heartbeat import lease_seconds
from engine.worker.database.reader import Reader
from engine.worker.side_thread import SideThread

log = logging.getLogger("engine.notices")

NOTICE = "notice"  # the payload of `engine_wake` for a new row

LOOK_SECONDS = 5.0  # in case a notification is lost
LOGGED_AT_ONCE = 500
SENT_AT_ONCE = 20
PAUSE_SECONDS = 1.0  # after an error of the database
LAST_SECONDS = 2.0

OURS = ("is_logged", "taken_until")  # not reported
COLUMNS = tuple(field.attname for field in Notice._meta.concrete_fields if field.attname not in OURS)

# Rows that are not taken, or were taken by a process that died. Rows of workflows not declared here, whose receivers
# are in other processes, only after a while.
TAKE = f"""
    WITH free AS (
        SELECT key FROM engine_notice
        WHERE is_logged = %(is_logged)s AND (taken_until IS NULL OR taken_until < clock_timestamp())
          AND (workflow = '' OR workflow = ANY (%(workflows)s::text[])
               OR at < clock_timestamp() - %(lease)s * interval '1 second')
        ORDER BY key LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    )
    UPDATE engine_notice n SET taken_until = clock_timestamp() + %(lease)s * interval '1 second'
    FROM free WHERE n.key = free.key
    RETURNING {", ".join(f"n.{name}" for name in COLUMNS)}
"""  # noqa: S608 - constants of ours

# Deletes the reported rows and releases the others.
SETTLE = """
    WITH told AS (DELETE FROM engine_notice WHERE key = ANY (%(told)s::bigint[]))
    UPDATE engine_notice SET is_logged = true, taken_until = NULL WHERE key = ANY (%(left)s::bigint[])
    RETURNING key
"""

IS_ANY = "SELECT EXISTS (SELECT FROM engine_notice)"

RETIRE = """
    INSERT INTO engine_notice (kind, at, worker, reason)
    VALUES ('worker_retired', clock_timestamp(), left(%(worker)s, 100), %(reason)s)
    RETURNING pg_notify('engine_wake', 'notice') IS NULL
"""


class Notices:
    """Reports pending notices, after `look` and every few seconds."""

    def __init__(self, reader: Callable[[], Reader]) -> None:
        self._reader = reader
        self._log = self._make_side_thread()
        self._receivers = self._make_side_thread()
        self._lease = lease_seconds()
        self._to_log = asyncio.Event()
        self._to_log.set()  # some may be left over
        self._to_send = asyncio.Event()

    def _make_side_thread(self) -> SideThread:
        return SideThread()

    def look(self) -> None:
        """Look soon: there is something to report."""
        self._to_log.set()

    async def worker_retired(self, worker: str, reason: str) -> None:
        """Report that a worker was stopped because it could not continue."""
        try:
            await self._reader().ask(RETIRE, {"worker": worker, "reason": reason})
        except psycopg.Error:
            notices.log.warning("Worker %s was retired: %s", worker, reason)

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep_writing())
                group.create_task(self._keep_sending())
        finally:
            self._log.stop()
            self._receivers.stop()

    async def _keep_writing(self) -> None:
        while True:
            is_woken = await _is_set_within(LOOK_SECONDS, self._to_log)
            self._to_log.clear()
            async with _patience():
                if is_woken or await self._is_any():
                    while await self.write_some():
                        continue
                    self._to_send.set()

    async def _keep_sending(self) -> None:
        while True:
            await self._to_send.wait()
            self._to_send.clear()
            async with _patience():
                while await self.send_some():
                    continue

    async def write_some(self) -> bool:
        """Log some notices. Return whether there were any and the log accepted them."""
        if self._log.hangs():
            return False  # the log of another process may accept it
        found = await self._take(is_logged=False, limit=LOGGED_AT_ONCE)
        if not found or not await self._log.call(lambda: _write(found), name=notices.log.name):
            return False
        told: list[Notice] = []
        kept: list[Notice] = []
        for one in found:
            has_receivers = SIGNALS[one.kind].has_listeners(notices.sender(one))
            (kept if has_receivers else told).append(one)
        await self._settle(told, kept)
        return True

    async def send_some(self) -> bool:
        """Call the receivers of some notices. Return whether there were any."""
        found = await self._take(is_logged=True, limit=SENT_AT_ONCE)
        until = time.monotonic() + self._lease / 2
        told: list[Notice] = []
        for one in found:
            if time.monotonic() > until:
                break
            await self._send(one)
            told.append(one)
        if found:
            await self._receivers.call(self._close_connections, key=id(self))
            await self._settle(told, found[len(told) :])
        return bool(found)

    async def _send(self, notice: Notice) -> None:
        sender = notices.sender(notice)
        for one in SIGNALS[notice.kind].told(sender, **notices.arguments(notice)):
            await self._receivers.call(one.call, key=one.key, name=f"{one.name}, called with {notice}")

    def _close_connections(self) -> None:
        connections.close_all()  # of this thread: the next use may be hours away

    async def _is_any(self) -> bool:
        [(is_any,)] = await self._reader().ask(IS_ANY)
        return bool(is_any)

    async def _take(self, *, is_logged: bool, limit: int) -> list[Notice]:
        values = {
            "is_logged": is_logged,
            "limit": limit,
            "lease": self._lease,
            "workflows": sorted(workflows.served),
        }
        found = await self._reader().ask(TAKE, values)
        return [Notice(**dict(zip(COLUMNS, row, strict=True))) for row in sorted(found)]

    async def _settle(self, told: list[Notice], left: list[Notice]) -> None:
        await self._reader().ask(
            SETTLE, {"told": [one.key for one in told], "left": [one.key for one in left]}
        )


def worker_retired(worker: str, reason: str) -> None:
    """Report, over Django's connection, that a worker was stopped because it could not continue.

    If the database does not answer, it is only logged, at once.
    """
    try:
        with connection.cursor() as cursor:
            cursor.execute(RETIRE, {"worker": worker, "reason": reason})
    except Error:
        notices.log.warning("Worker %s was retired: %s", worker, reason)


def worker_ends(worker: str, reason: str) -> None:
    """Do the same for a process that is about to be killed, with little time for the database to answer."""
    thread = threading.Thread(target=worker_retired, args=(worker, reason), daemon=True)
    thread.start()
    thread.join(LAST_SECONDS)


def _write(found: list[Notice]) -> None:
    for one in found:
        try:
            notices.write(one)
        except Exception:  # raised by a filter or handler of the project: the other lines are still written
            with suppress(Exception):  # the log may refuse this line as well
                log.exception("%s could not be written to the log", one)


async def _is_set_within(seconds: float, wanted: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await wanted.wait()
    except TimeoutError:
        return False


@asynccontextmanager
async def _patience() -> AsyncIterator[None]:
    """Continue after an error: what could not be reported now is reported later, and no instance depends on it."""
    try:
        yield
    except psycopg.Error as error:
        log.warning("failures could not be reported now; will retry: %s", error)
        await asyncio.sleep(PAUSE_SECONDS)
    except Exception:
        log.exception("failures could not be reported now; will retry")
        await asyncio.sleep(PAUSE_SECONDS)
