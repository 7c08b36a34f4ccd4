"""Rows that are over: requests delete some of them each time, and a worker the rest, every hour."""

from __future__ import annotations

import time

from django.db import connection

KEPT = "1 day"  # an answer to a request with an Idempotency-Key
BATCH = 1_000

_OVER = {
    "studio_idempotencykey": f"created_at < clock_timestamp() - interval '{KEPT}'",
    "studio_throttle": "ends_at < clock_timestamp()",
}
# Skip rows that a request deletes or uses right now.
_DELETE = """
DELETE FROM {table} WHERE key IN (SELECT key FROM {table} WHERE {over} LIMIT %s FOR UPDATE SKIP LOCKED)
"""


def sweep(*, seconds: float = 60.0) -> None:
    """Delete all of them, for about this many seconds."""
    until = time.monotonic() + seconds
    with connection.cursor() as cursor:
        for table, over in _OVER.items():
            deleted = BATCH
            while deleted == BATCH and time.monotonic() < until:
                cursor.execute(_DELETE.format(table=table, over=over), [BATCH])
                deleted = cursor.rowcount
