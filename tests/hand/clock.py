"""The clock of a test, for workers and sessions of their own: statements need not be changed to say its time."""

from __future__ import annotations

from typing import Any

import psycopg

from engine.replay.records.outcomes import moment
from engine.testing.clock import StandingClock

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


class SimulatedClock(StandingClock):
    """The time of a simulation. A sequence carries it: every session sees it at once, whatever its snapshot."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        super().__init__(moment(START_US))
        self._connection = connection
        connection.execute(_INSTALL)
        self._tell()

    def advance(self, us: int = TICK_US) -> None:
        self.move_to(self.us + us)
        self._tell()

    def _tell(self) -> None:
        self._connection.execute("SELECT setval('sim.us', %s)", (self.us,))
