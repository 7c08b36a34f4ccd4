"""Delete the rows of bulk jobs that ended long ago, in small batches. The instance of a job has the same retention.

It never waits for a lock: a job that somebody changes is left for the next time.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from django.db import connection, transaction

from engine.jobs.workflow import NAME
from engine.steer.clock import database_time

KEPT = timedelta(days=30)
BATCH = 5_000  # items

# Without an end, it is the instance that was deleted: the job cannot go on.
_OLD = """
    SELECT key FROM engine_bulk_job job
    WHERE coalesce(finished_at, aborted_at) <= %(cutoff)s
       OR finished_at IS NULL AND aborted_at IS NULL AND created_at <= %(cutoff)s AND NOT EXISTS (
          SELECT FROM engine_instance i WHERE i.workflow = %(workflow)s AND i.id = job.id)
    ORDER BY key LIMIT 1 FOR UPDATE SKIP LOCKED
"""
_ITEMS = """
    DELETE FROM engine_bulk_item WHERE job_id = %s AND position IN (
        SELECT position FROM engine_bulk_item WHERE job_id = %s ORDER BY position LIMIT %s)
"""


def sweep(*, batch: int = BATCH, seconds: float = 60.0, now: datetime | None = None) -> int:
    """Delete what ended 30 days ago, for about this many seconds. Return the number of deleted jobs.

    Each batch is a transaction. `now` is by default the database's time.
    """
    cutoff = (now or database_time()) - KEPT
    until, deleted = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_OLD, {"cutoff": cutoff, "workflow": NAME})
            found = cursor.fetchone()
            if found is None:
                return deleted
            cursor.execute(_ITEMS, [*found, *found, batch])
            if cursor.rowcount < batch:
                cursor.execute("DELETE FROM engine_bulk_job WHERE key = %s", found)
                deleted += 1
    return deleted
