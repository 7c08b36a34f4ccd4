"""The broker's connection: it listens, queries, and reconnects by itself."""

from __future__ import annotations

import logging
import select
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from engine.models.connection import parameters
from engine.steer.notify import DRAIN, QUARANTINE, REAP, WAKE
from engine.worker.cluster.process_locks import Flag
from engine.worker.database import claim_sql
from engine.worker.database import cluster_sql as sql
from engine.worker.database.connect import LimitedConnection, connect_limited
from engine.worker.drain import Drain
from engine.worker.membership import Membership

logger = logging.getLogger("engine.cluster")

TASKS = "engine_tasks"

# The limit for an answer.
ANSWER_SECONDS = 15.0

# The broker's queries are short; a lock or a slow server must not delay the stop of the cluster.
SESSION = "SET statement_timeout = '10s'; SET lock_timeout = '5s'"

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 1.0

COUNT_QUARANTINED = 100  # at most


@dataclass(frozen=True)
class Hints:
    """The notifications received while waiting."""

    tasks: bool = False
    death: bool = False
    drain: bool = False


class BrokerConnection:
    """Listens for tasks and deaths on a connection opened on first use, in the process that uses it."""

    def __init__(self, *, alias: str, key: str, stop: Flag) -> None:
        self.alias = alias
        self.key = key
        self._stop = stop
        self._connection: LimitedConnection | None = None
        self._pause = 0.0
        self._try_at = 0.0

    def open(self) -> bool:
        """Return whether there is a connection. Open one if there is none, unless the last try was just now."""
        if self._connection is None and time.monotonic() >= self._try_at:
            options = parameters(self.alias) | {"application_name": "reprise-broker"}
            try:
                self._connection = connect_limited(ANSWER_SECONDS, **options)
                self._connection.execute(SESSION)
                self._connection.execute(f"LISTEN {WAKE}")
                self._connection.execute(f"LISTEN {TASKS}")
            except psycopg.Error as error:
                self.lose(error)
        return self._connection is not None

    def lose(self, error: psycopg.Error) -> None:
        """Drop the connection. The next one is tried after a pause that grows to one second."""
        if self._pause == 0.0:
            logger.warning("The broker lost its database and keeps trying: %s", str(error).strip())
        self._pause = min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
        self._try_at = time.monotonic() + self._pause
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def wait(self, seconds: float) -> Hints:
        """Wait for notifications, or for the cluster to stop, at most this long."""
        if self._connection is None:
            self._stop.wait(min(seconds, max(self._try_at - time.monotonic(), 0.0)))
            return Hints()
        # Some may have arrived with the answer to the last statement.
        hints = self._read(self._connection)
        if hints == Hints():
            poll = select.poll()
            poll.register(self._connection.fileno(), select.POLLIN)
            poll.register(self._stop.fileno(), select.POLLIN)
            poll.poll(max(seconds, 0.0) * 1000)
            hints = self._read(self._connection)
        return hints

    def quarantined(self, *, workflows: Sequence[str], limits: Mapping[str, int]) -> int:
        """Count the quarantined instances that are due, for workflows with a limit at most as many as it allows."""
        values = {
            "unlimited": [name for name in workflows if name not in limits],
            "limited": [*limits],
            "limits": [*limits.values()],
            "quarantined": COUNT_QUARANTINED,
        }
        [(count,)] = self._ask(claim_sql.QUARANTINED, values)
        return int(count)

    def claim_tasks(self, *, limit: int, retry: float) -> list[tuple[int, str]]:
        return self._ask(sql.CLAIM_TASKS, {"limit": limit, "retry": retry})

    def beat(
        self, membership: Membership, drain: Drain, *, workflows: Sequence[str], slots: int
    ) -> tuple[Any, ...]:
        """Write the cluster's row of `engine_worker`. Return what it says of a drain."""
        own = {"role": "cluster", "worker_id": membership.id, "name": membership.cluster, "held": 0}
        values = {
            **own,
            "workflows": list(workflows),
            "slots": slots,
            **membership.values(),
            **drain.values(),
        }
        [row] = self._ask(sql.BEAT, values) or [()]
        if self._pause:
            logger.info("The broker has reconnected to its database.")
            self._pause = 0.0
        return row

    def tell_death(self) -> None:
        """Notify workers to take back at once what a dead process held."""
        self._ask(sql.TELL, {"channel": WAKE, "payload": REAP})

    def leave(self, membership: Membership) -> None:
        self._ask(sql.LEAVE, {"worker_id": membership.id})

    def _ask(self, statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        if self._connection is None:
            return []
        cursor = self._connection.execute(statement, {"key": self.key, **values}, prepare=True)
        return cursor.fetchall() if cursor.description else []

    def _read(self, connection: psycopg.Connection[Any]) -> Hints:
        notes = list(connection.notifies(timeout=0))
        return Hints(
            tasks=any(note.channel == TASKS and note.payload == self.key for note in notes),
            drain=any(note.channel == WAKE and note.payload == DRAIN for note in notes),
            death=any(note.channel == WAKE and note.payload in (REAP, QUARANTINE) for note in notes),
        )
