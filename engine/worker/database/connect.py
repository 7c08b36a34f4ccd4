"""A worker's own connections, apart from Django's: one holds its lock, one writes its journal, one claims and reads."""

from __future__ import annotations

import asyncio
import functools
import re
import time
from collections.abc import Generator, Mapping
from typing import Any

import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult
from psycopg.types.array import ListBinaryDumper

from engine.models.connection import parameters

# Timeouts set by a role or a database must not end a statement, or the session that holds the worker's lock: a briefly
# locked table is waited for. Only an idle transaction, for example of a stopped process, must not keep its locks.
LIMITS = (
    "SET lock_timeout = 0; SET statement_timeout = 0; SET idle_session_timeout = 0; "
    "SET idle_in_transaction_session_timeout = '10s'; "
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout'"  # since 17
)
# When the network is silent, TCP sends again after pauses that double: after 12 s of silence it may wait 13 more. Work
# has to go on within 5 s, so a connection is given up sooner and opened again. Both ends do so: either may be the one
# that sends again. The lock's connection is kept longer: nothing waits for it, and its loss costs the running bodies.
GIVE_UP_MILLISECONDS = 8_000
LOCK_GIVE_UP_MILLISECONDS = 15_000
# Where the project's settings say nothing: without these, a connection hangs for hours when the network is cut.
NETWORK = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
# The backend notices a worker that died during a query only if it checks; otherwise at the end of the query. The
# statements of the journal and the claims touch few rows by key: a plan made for empty tables must not stay a scan.
SESSION = (
    "SET client_connection_check_interval = 500; SET enable_seqscan = off; SET enable_hashjoin = off; "
    f"SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan; SET jit = off; "
    f"SET tcp_user_timeout = {GIVE_UP_MILLISECONDS}; {LIMITS}"
)


# If packets are lost, only a timeout shows that no answer will come. A connection used by a thread gives up by itself
# (LimitedConnection). Connections of a loop record since when they wait, and the shift checks all of them.


class LimitedConnection(psycopg.Connection[Any]):
    """Waits a limited time for an answer, then raises psycopg.OperationalError. It is unusable after that."""

    answer_seconds = float("inf")

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        return super().wait(_limited(gen, self.answer_seconds), *args, **options)


def _limited(waiting: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """Pass on what psycopg waits for. psycopg calls it several times a second even if nothing arrives."""
    ends_at = time.monotonic() + seconds
    try:
        wanted = next(waiting)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > ends_at:
                raise psycopg.OperationalError(f"no answer for {seconds:g} s")
            wanted = waiting.send(ready)
    except StopIteration as end:
        return end.value


def connect_limited(answer_seconds: float, **options: Any) -> LimitedConnection:
    """Open an autocommit connection for a thread. Raises psycopg.OperationalError if the database does not answer."""
    connection = LimitedConnection.connect(**{**NETWORK, **options}, autocommit=True)
    connection.answer_seconds = answer_seconds
    return connection


class Connection(psycopg.AsyncConnection[Any]):
    """A connection that records since when it waits for an answer."""

    asked_at: float | None = None
    _statements: PreparedStatements | None = None

    async def execute(self, query: Any, params: Any = None, **options: Any) -> psycopg.AsyncCursor[Any]:
        """Execute as psycopg does, but parse each statement once: psycopg caches only those up to 4,096 characters."""
        if not isinstance(params, dict):
            return await super().execute(query, params, **options)
        numbered, names = _numbered(query)
        cursor = psycopg.AsyncRawCursor(self)
        return await cursor.execute(numbered, [params[name] for name in names], **options)

    async def fetch(self, statement: str, parameters: Mapping[str, object]) -> list[tuple[Any, ...]]:
        """Execute one of the few statements that each step waits for, and return its rows.

        A cursor of psycopg does the same with more Python: it makes a transformer and a query object each time.
        """
        if self._statements is None:
            self._statements = PreparedStatements(self)
        async with self.lock:
            self.asked_at = time.monotonic()
            try:
                return await self._statements.fetch(statement, parameters)
            finally:
                self.asked_at = None

    async def wait(self, *args: Any, **options: Any) -> Any:
        self.asked_at = time.monotonic()
        try:
            return await super().wait(*args, **options)
        finally:
            self.asked_at = None

    def waits_longer_than(self, seconds: float) -> bool:
        return self.asked_at is not None and time.monotonic() - self.asked_at > seconds


class PreparedStatements:
    """Sends statements over a connection, which keeps them prepared, and reads the answers."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._server = connection.pgconn
        self._values = Transformer(connection)  # remembers how each type is sent and read
        self._names: dict[tuple[str, tuple[int, ...]], bytes] = {}  # by statement and types of parameters

    async def fetch(self, statement: str, parameters: Mapping[str, object]) -> list[tuple[Any, ...]]:
        numbered, names = _numbered(statement)
        values = self._values
        sent = values.dump_sequence([parameters[name] for name in names], [PyFormat.AUTO] * len(names))
        types = values.types or ()
        name = self._names.get((statement, types))
        if name is None:
            name = f"engine_{len(self._names)}".encode()
            self._server.send_prepare(name, numbered, types)
            await self._answer()
            self._names[statement, types] = name
        self._server.send_query_prepared(name, sent, values.formats)
        answer = await self._answer()
        values.set_pgresult(answer)
        return values.load_rows(0, answer.ntuples, tuple)

    async def _answer(self) -> PGresult:
        """Wait for the result of what was sent. Raises psycopg.Error."""
        server, found = self._server, list[PGresult]()
        try:
            while server.flush():
                await self._ready(is_sending=True)
            while True:
                while server.is_busy():
                    await self._ready()
                result = server.get_result()
                if result is None:
                    break
                found.append(result)
        except asyncio.CancelledError:
            server.finish()  # the next statement would get the answer that nobody waits for
            raise
        if found[0].status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise error_from_result(found[0])
        return found[0]

    async def _ready(self, *, is_sending: bool = False) -> None:
        """Wait until the server has sent something, or until more can be sent, and read what is there."""
        loop, socket = asyncio.get_running_loop(), self._server.socket
        ready = loop.create_future()

        def wake() -> None:
            if not ready.done():
                ready.set_result(None)

        loop.add_reader(socket, wake)
        if is_sending:
            loop.add_writer(socket, wake)
        try:
            await ready
        finally:
            loop.remove_reader(socket)
            if is_sending:
                loop.remove_writer(socket)
        self._server.consume_input()


@functools.lru_cache(maxsize=64)
def _numbered(statement: str) -> tuple[bytes, list[str]]:
    """Return a statement with numbered instead of named parameters, and the names in the order of their numbers."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found.group(1)
        if name is None:
            return "%"
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return re.sub(r"%(?:\((\w+)\)[sbt]|%)", number, statement).encode(), names


async def connect(
    application: str, *, is_durable: bool = True, give_up_ms: int = GIVE_UP_MILLISECONDS
) -> Connection:
    """Open an autocommit connection for the worker's loop.

    Without `is_durable`, a commit does not wait for the disk: for claims and leases, which a crash of the database
    reverts anyway, because it also ends the session with the lock. Raises psycopg.OperationalError if the database does
    not answer.
    """
    own = {"application_name": application, "tcp_user_timeout": give_up_ms}
    options = {**NETWORK, **parameters(), **own}
    connection = await Connection.connect(**options, autocommit=True, prepare_threshold=0)
    # In text format, each string of a list would be searched for quotes.
    connection.adapters.register_dumper(list, ListBinaryDumper)
    try:
        await connection.execute(SESSION, prepare=False)
        if not is_durable:
            await connection.execute("SET synchronous_commit = off", prepare=False)
    except BaseException:
        await connection.close()
        raise
    return connection
