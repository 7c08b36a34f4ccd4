"""A clock that tests move, for workers and for the database's sessions."""

from __future__ import annotations

from typing import Any

import psycopg

START_US = 1_900_000_000_000_000
TICK_US = 1_000

# PostgreSQL's own clock, overridden: a function is looked for in the schemas of search_path in their order.
SESSION = "SET search_path = sim, public, pg_catalog; SET jit = off"

_TIME = "SELECT timestamptz ''epoch'' + last_value * interval ''1 microsecond'' FROM sim.us"
_INSTALL = f"""
    CREATE SCHEMA IF NOT EXISTS sim;
    CREATE SEQUENCE IF NOT EXISTS sim.us MINVALUE 0;
    CREATE OR REPLACE FUNCTION sim.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
        AS '{_TIME}';
    CREATE OR REPLACE FUNCTION sim.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
        AS '{_TIME}';
"""


class SimulatedClock:
    """The time of a simulation. A sequence carries it: every session sees it at once, whatever its snapshot."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self.us = START_US
        connection.execute(_INSTALL)
        self._tell()

    def advance(self, us: int = TICK_US) -> None:
        self.us += us
        self._tell()

    def _tell(self) -> None:
        self._connection.execute("SELECT setval('sim.us', %s)", (self.us,))

    # What a worker asks of `engine.worker.database.clock.DatabaseClock`

    def set(self, database_us: int, *, sent_ns: int, received_ns: int) -> None:
        """There is nothing to learn: this is the database's clock."""

    def now_us(self) -> int:
        return self.us

    def due_us(self) -> int:
        return self.us

    def seconds_until(self, when_us: int) -> float:
        return max(0.0, (when_us - self.us) / 1_000_000)
