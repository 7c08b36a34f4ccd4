"""The clock of a test: it stands still while code runs, and jumps when something waits.

The engine uses the database's clock. So in the statements of the test's connection, the functions that return it are
replaced by the time of this clock; nothing is created or set in the database. Column defaults and triggers write the
real time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from engine.replay.records.outcomes import micros, moment
from engine.worker.database.clock import DatabaseClock

# Not transaction_timestamp(): it identifies the transaction.
ASKS_FOR_TIME = re.compile(r"(?<![\w.'\"])(?:clock_timestamp|statement_timestamp|now)\(\)", re.IGNORECASE)


class StandingClock(DatabaseClock):
    """Replaces the database's clock."""

    def __init__(self, start: datetime) -> None:
        super().__init__()
        self.us = micros(start)

    @property
    def now(self) -> datetime:
        return moment(self.us)

    def move_to(self, us: int) -> None:
        """Set the time. It never goes back."""
        self.us = max(self.us, us)

    def set(self, database_us: int, *, sent_ns: int, received_ns: int) -> None:
        """Do nothing: the database's time is that of this clock."""

    def now_us(self) -> int:
        return self.us

    def due_us(self) -> int:
        return self.us

    def seconds_until(self, when_us: int) -> float:
        return max(0.0, (when_us - self.us) / 1_000_000)

    # In statements

    def put_into(self, statement: str) -> str:
        """Replace the database's clock in a statement by this time."""
        return ASKS_FOR_TIME.sub(f"(timestamptz '{self.now.isoformat()}')", statement)

    def wrap(self, execute: Callable[..., Any], statement: Any, *rest: Any) -> Any:
        """Do that for Django's statements: see its `connection.execute_wrapper`."""
        return execute(self.put_into(statement) if isinstance(statement, str) else statement, *rest)
