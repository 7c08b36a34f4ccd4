"""Count the failures of each group and hour, and delete groups that are long over.

A worker runs `count` every few minutes and `purge` every hour (`engine.worker.periodic`). Several workers may do so at
once. Pages read these counts, and what has failed since the hour that was counted last.
"""

from __future__ import annotations

from datetime import datetime

from django.db import connection

from engine.steer.clock import database_time

KEPT = "35 days"
BATCH = 500  # groups

# An hour is counted when it is over, and once more with the next one: an attempt is written a moment after its end, or
# longer if the database does not answer. Counts never fall, so that they outlive the instances. A group is skipped
# while nothing has failed since.
COUNT = """
    WITH closed AS MATERIALIZED (
        SELECT date_trunc('hour', %(now)s - interval '2 minutes', 'UTC') AS at
    ), due AS MATERIALIZED (
        SELECT f.fingerprint, f.of_attempts, f.counted_to - interval '1 hour' AS since, closed.at AS until
        FROM engine_failure f CROSS JOIN closed
        WHERE f.counted_to < closed.at AND CASE WHEN f.of_attempts THEN EXISTS (
            SELECT FROM engine_attempt a
            WHERE a.fingerprint = f.fingerprint AND a.failed_at >= f.counted_to - interval '1 hour'
        ) ELSE EXISTS (
            SELECT FROM engine_instance i
            WHERE i.fingerprint = f.fingerprint AND i.status = 'errored'
              AND i.finished_at >= f.counted_to - interval '1 hour'
        ) END
        ORDER BY f.fingerprint LIMIT %(batch)s FOR NO KEY UPDATE OF f SKIP LOCKED
    ), found AS (
        SELECT d.fingerprint, date_trunc('hour', a.failed_at, 'UTC') AS hour, count(*) AS attempts
        FROM due d JOIN engine_attempt a ON a.fingerprint = d.fingerprint AND a.failed_at >= d.since
            AND a.failed_at < d.until
        WHERE d.of_attempts GROUP BY 1, 2
        UNION ALL
        SELECT d.fingerprint, date_trunc('hour', i.finished_at, 'UTC') AS hour, count(*) AS attempts
        FROM due d JOIN engine_instance i ON i.fingerprint = d.fingerprint AND i.status = 'errored'
            AND i.finished_at >= d.since AND i.finished_at < d.until
        WHERE NOT d.of_attempts GROUP BY 1, 2
    ), counted AS (
        INSERT INTO engine_failure_count AS c (fingerprint, hour, attempts)
        SELECT fingerprint, hour, attempts FROM found ORDER BY fingerprint, hour
        ON CONFLICT (fingerprint, hour) DO UPDATE SET attempts = greatest(c.attempts, excluded.attempts)
    )
    UPDATE engine_failure f SET counted_to = d.until FROM due d WHERE f.fingerprint = d.fingerprint
    RETURNING f.fingerprint
"""

PURGE_COUNTS = f"DELETE FROM engine_failure_count WHERE hour < %(now)s - interval '{KEPT}'"  # noqa: S608

# Groups that nothing refers to any more, and the decisions about them. A worker that has met such a group within the
# last hour will not write it again (`engine.worker.database.failure_groups`), but then an attempt refers to it.
PURGE_GROUPS = f"""
    WITH over AS (
        SELECT f.fingerprint FROM engine_failure f
        WHERE f.first_seen < %(now)s - interval '{KEPT}'
          AND NOT EXISTS (SELECT FROM engine_failure_count c WHERE c.fingerprint = f.fingerprint)
          AND NOT EXISTS (SELECT FROM engine_attempt a WHERE a.fingerprint = f.fingerprint)
          AND NOT EXISTS (SELECT FROM engine_instance i WHERE i.fingerprint = f.fingerprint)
        ORDER BY f.fingerprint FOR UPDATE OF f SKIP LOCKED
    )
    DELETE FROM engine_failure f USING over WHERE f.fingerprint = over.fingerprint
"""  # noqa: S608


def count(*, now: datetime | None = None) -> int:
    """Count the hours that are over. Return the number of groups that had failures since they were counted.

    `now` is by default the database's time.
    """
    values: dict[str, datetime | int] = {"now": now or database_time(), "batch": BATCH}
    total, found = 0, BATCH
    while found == BATCH:
        with connection.cursor() as cursor:
            cursor.execute(COUNT, values)
            found = cursor.rowcount
        total += found
    return total


def purge(*, now: datetime | None = None) -> int:
    """Delete counts that are older than 35 days, and groups that nothing is left of. Return the number of groups."""
    values = {"now": now or database_time()}
    with connection.cursor() as cursor:
        cursor.execute(PURGE_COUNTS, values)
        cursor.execute(PURGE_GROUPS, values)
        return int(cursor.rowcount)
