"""The clock of a test stops the time that statements read from the database, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from engine.testing.clock import StandingClock

NOW = "(timestamptz '2030-01-01T00:00:00+00:00')"


@pytest.mark.parametrize(
    ("statement", "sent"),
    [
        ("SELECT clock_timestamp()", f"SELECT {NOW}"),
        ("SET x = STATEMENT_TIMESTAMP() + a, y = now()", f"SET x = {NOW} + a, y = {NOW}"),
        ("SELECT transaction_timestamp(), known()", "SELECT transaction_timestamp(), known()"),
        ("SELECT pg_catalog.now(), 'now()'", "SELECT pg_catalog.now(), 'now()'"),
    ],
)
def test_a_statement_that_asks_for_the_time_is_told(statement: str, sent: str) -> None:
    assert StandingClock(datetime(2030, 1, 1, tzinfo=UTC)).put_into(statement) == sent
