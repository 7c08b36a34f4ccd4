"""Delete what is old, a little at a time: bodies first, rows when no sender repeats them any more.

Deliveries sweep their own hook, so that a busy one never keeps much. What is left when no more arrive is deleted by a
worker, every hour (`engine.steer.housekeeping`).
"""

from __future__ import annotations

import time

from django.db import connection

from studio.models import Webhook

BODIES = 100  # of the newest deliveries of a hook that are kept
BODIES_FOR = "7 days"
ROWS_FOR = "30 days"  # senders repeat deliveries for some days at most
EVERY = 10  # deliveries
BATCH = 50

_BODIES = """
UPDATE studio_webhookdelivery SET body = NULL WHERE key IN (
       SELECT key FROM studio_webhookdelivery
        WHERE webhook_id = %(hook)s AND body IS NOT NULL
          AND (key <= (SELECT key FROM studio_webhookdelivery WHERE webhook_id = %(hook)s AND body IS NOT NULL
                        ORDER BY key DESC OFFSET %(kept)s LIMIT 1)
               OR received_at < clock_timestamp() - %(age)s::interval)
        ORDER BY key LIMIT %(batch)s FOR UPDATE SKIP LOCKED)
"""
# Look at the oldest only: without a limit, a hook with nothing to delete would be read to its end each time.
_ROWS = """
DELETE FROM studio_webhookdelivery WHERE key IN (
       SELECT key FROM (SELECT key, last_at FROM studio_webhookdelivery WHERE webhook_id = %(hook)s
                         ORDER BY key LIMIT %(batch)s FOR UPDATE SKIP LOCKED) AS oldest
        WHERE last_at < clock_timestamp() - %(age)s::interval)
"""


def sweep(hook: Webhook) -> None:
    """Delete a batch of a hook."""
    _sweep(hook.key)


def sweep_all(*, seconds: float = 60.0) -> None:
    """Delete everything that is old, for about this many seconds."""
    until = time.monotonic() + seconds
    for key in Webhook.objects.values_list("key", flat=True):
        while time.monotonic() < until and _sweep(key):
            continue


def _sweep(key: int) -> int:
    """Delete a batch; return how many bodies and rows it was."""
    with connection.cursor() as cursor:
        cursor.execute(_BODIES, {"hook": key, "kept": BODIES, "age": BODIES_FOR, "batch": BATCH})
        bodies = cursor.rowcount
        cursor.execute(_ROWS, {"hook": key, "age": ROWS_FOR, "batch": BATCH})
        return bodies + cursor.rowcount
