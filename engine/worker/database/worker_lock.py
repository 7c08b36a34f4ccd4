"""The lock of a worker: while its session holds it, the worker owns the instances with its id as `owner`."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

import psycopg

from engine.worker.database import sql
from engine.worker.database.connect import LOCK_GIVE_UP_MILLISECONDS, Connection, connect
from engine.worker.database.shift_connection import ShiftConnection

LOOKS = 3  # at who else gets its session: one look may come just when a pooler has given it to nobody

# The ids that this process took. The process is alive, so what they held was not left by a dead worker.
_taken_here: set[int] = set()


def taken_here() -> list[int]:
    """Return the ids whose locks this process holds, and those whose connection it lost."""
    return sorted(_taken_here)


class WorkerLockLost(Exception):
    """A connection of the shift broke, so its leases are no longer safe."""


class SessionSharedError(WorkerLockLost):
    """A pooler gives the session that holds the lock to others, so the lock protects nothing."""

    def __init__(self) -> None:
        super().__init__(
            "A connection pooler shares its sessions between clients, so workers cannot hold locks. It must run in "
            "session mode."
        )


class WorkerLock:
    """Holds the advisory lock of a free id, its `number`, on a connection that otherwise only listens.

    When this process dies, its backend is idle, so the lock is released within milliseconds. `lost` fails when the
    connection breaks.
    """

    _on_wake: Callable[[str], None]

    def __init__(self, connection: Connection, number: int) -> None:
        self.number = number
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._fd = connection.fileno()
        self.lost: asyncio.Future[None] = self._loop.create_future()

    @classmethod
    async def take(cls, name: str) -> WorkerLock:
        """Take the lock of a free id. Raises psycopg.OperationalError if the database does not answer."""
        connection = await connect(f"reprise lock {name}"[:63], give_up_ms=LOCK_GIVE_UP_MILLISECONDS)
        try:
            number = await _lock(connection)
            # The server keeps trying to send notifications: giving up would release the lock.
            await connection.execute("SET tcp_user_timeout = 0; LISTEN engine_wake", prepare=False)
        except BaseException:
            await connection.close()
            raise
        return cls(connection, number)

    async def check_session(self, other: ShiftConnection) -> None:
        """Raise SessionSharedError if this connection does not keep its session of the server to itself.

        A pooler in transaction mode gives the session that was used last to the next client: to the other connection,
        whose transaction then keeps it from this one.
        """
        for _ in range(LOOKS):
            own = await _backend_of(self._connection)
            async with other.transaction():
                [(others,)] = await (await other.execute(sql.BACKEND, prepare=False)).fetchall()
                if own == others or own != await _backend_of(self._connection):
                    raise SessionSharedError

    def listen(self, on_wake: Callable[[str], None]) -> None:
        """Call `on_wake` with the payload of every notification from now on."""
        self._on_wake = on_wake
        self._loop.add_reader(self._fd, self._readable)

    async def leave(self) -> None:
        self._loop.remove_reader(self._fd)
        self.lost.cancel()
        await self._connection.close()

    def ask(self) -> None:
        """Ping the server, unless an answer is pending: an idle connection may have died unnoticed."""
        if self._connection.asked_at is None and not self.lost.done():
            self._connection.asked_at = time.monotonic()
            self._connection.pgconn.send_query(b"")
            self._connection.pgconn.flush()

    def waits_longer_than(self, seconds: float) -> bool:
        return self._connection.waits_longer_than(seconds)

    def _take_answer(self) -> None:
        while self._connection.asked_at is not None and not self._connection.pgconn.is_busy():
            if self._connection.pgconn.get_result() is None:
                self._connection.asked_at = None

    def _readable(self) -> None:
        try:
            self._connection.pgconn.consume_input()
            self._take_answer()
            while notify := self._connection.pgconn.notifies():
                self._on_wake(notify.extra.decode())
        except psycopg.Error as error:
            self._loop.remove_reader(self._fd)
            if not self.lost.done():
                self.lost.set_exception(WorkerLockLost(str(error)))


async def _backend_of(connection: Connection) -> int:
    [(backend,)] = await (await connection.execute(sql.BACKEND, prepare=False)).fetchall()
    return int(backend)


async def _lock(connection: Connection) -> int:
    while True:
        number = random.randrange(1, 2**31)  # noqa: S311 - a name, not a secret
        [(taken,)] = await (
            await connection.execute(sql.TAKE_WORKER_LOCK, (number,), prepare=False)
        ).fetchall()
        if taken:
            _taken_here.add(number)
            return number
