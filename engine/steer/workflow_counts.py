"""Add up what was counted with each start, run and end, and delete old counts.

The front worker runs `fold` every few seconds and `purge` every hour (`engine.worker.periodic`). Two workers may do so
at once. Readers add what is not folded yet (`engine.status.last_day`, `engine.status.series`): each change is either
there or in a count.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection

from engine.steer.clock import database_time

BATCH = 5_000  # changes; or old counts
ROUNDS = 20  # of one run
KEPT = {"minute": "26 hours", "hour": "90 days", "day": "90 days"}
SPANS_KEPT = {
    1: timedelta(hours=26),
    10: timedelta(hours=50),
    60: timedelta(days=8),
    360: timedelta(days=91),
    1440: timedelta(days=91),
}
"""How long the spans of charts are kept, by their minutes: the longer, the longer."""

_UNITS = ", ".join(f"('{unit}', interval '{kept}')" for unit, kept in KEPT.items())

# In one statement, so that no reader sees a change twice or not at all. Counts are written in the order of their keys:
# two workers cannot deadlock. What is older than the counts that are kept is dropped. An array, because a nested loop
# would read a subquery again for each row, and find other changes each time. By place in the table, which no update
# changes, and added up once before each unit: with 8,000 changes it took 4 to 6 µs a change instead of 30. The spans of
# charts are added to by a trigger of the deletion; what workers ran is in them only.
FOLD = f"""
    WITH taken AS (
        DELETE FROM engine_workflow_count_delta WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM engine_workflow_count_delta ORDER BY key LIMIT %(batch)s FOR UPDATE SKIP LOCKED
        ))
        RETURNING workflow, at, what, bucket, amount
    ), grouped AS (
        SELECT workflow, at, what, bucket, sum(amount) AS amount FROM taken
        WHERE what IN ('started', 'complete', 'errored', 'terminated') GROUP BY 1, 2, 3, 4
    ), added AS (
        INSERT INTO engine_workflow_count AS c (unit, at, workflow, what, bucket, amount)
        SELECT span.unit, date_trunc(span.unit, g.at, 'UTC'), g.workflow, g.what, g.bucket, sum(g.amount)
        FROM grouped g JOIN (VALUES {_UNITS}) AS span (unit, kept) ON g.at >= %(now)s - span.kept
        GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
        ON CONFLICT (unit, at, workflow, what, bucket) DO UPDATE SET amount = c.amount + excluded.amount
    )
    SELECT count(*) FROM taken
"""  # noqa: S608

_OLD = " OR ".join(f"unit = '{unit}' AND at < %(now)s - interval '{kept}'" for unit, kept in KEPT.items())
PURGE = f"DELETE FROM engine_workflow_count WHERE {_OLD}"  # noqa: S608

_OLD_SPANS = " OR ".join(
    f"minutes = {minutes} AND at < %(now)s - interval '{kept.total_seconds():.0f} seconds'"
    for minutes, kept in SPANS_KEPT.items()
)
PURGE_SPANS = f"""
    DELETE FROM engine_workflow_span WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM engine_workflow_span WHERE {_OLD_SPANS} LIMIT %(batch)s FOR UPDATE SKIP LOCKED
    ))
"""  # noqa: S608


def fold(*, now: datetime | None = None) -> int:
    """Add changes to the counts of their minute, hour and day: at most 100,000, the rest in the next run.

    `now` is by default the database's time. Return the number of changes.
    """
    values: dict[str, datetime | int] = {"now": now or database_time(), "batch": BATCH}
    total = 0
    for _ in range(ROUNDS):
        with connection.cursor() as cursor:
            cursor.execute(FOLD, values)
            (found,) = cursor.fetchone()
        total += found
        if found < BATCH:
            break
    return total


def purge(*, now: datetime | None = None) -> int:
    """Delete what is kept no longer: see `KEPT` and `SPANS_KEPT`. Return how much."""
    values: dict[str, datetime | int] = {"now": now or database_time(), "batch": BATCH}
    with connection.cursor() as cursor:
        cursor.execute(PURGE, values)
        total, found = int(cursor.rowcount), BATCH
        while found == BATCH:
            cursor.execute(PURGE_SPANS, values)
            found = cursor.rowcount
            total += found
        return total
