"""How many failures groups had on each of the last 14 days: from the counts of hours that are over, and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from django.db import connection

DAYS = 14

_COUNTS = """
    SELECT c.fingerprint, (c.hour AT TIME ZONE 'UTC')::date, sum(c.attempts)::bigint
    FROM engine_failure f JOIN engine_failure_count c USING (fingerprint)
    WHERE f.fingerprint = ANY (%(fingerprints)s) AND c.hour >= %(since)s AND c.hour < f.counted_to
    GROUP BY 1, 2
    UNION ALL
    SELECT f.fingerprint, (a.failed_at AT TIME ZONE 'UTC')::date, count(*)
    FROM engine_failure f JOIN engine_attempt a USING (fingerprint)
    WHERE f.fingerprint = ANY (%(fingerprints)s) AND f.of_attempts AND a.failed_at >= greatest(f.counted_to, %(since)s)
    GROUP BY 1, 2
    UNION ALL
    SELECT f.fingerprint, (i.finished_at AT TIME ZONE 'UTC')::date, count(*)
    FROM engine_failure f JOIN engine_instance i USING (fingerprint)
    WHERE f.fingerprint = ANY (%(fingerprints)s) AND NOT f.of_attempts AND i.status = 'errored'
      AND i.finished_at >= greatest(f.counted_to, %(since)s)
    GROUP BY 1, 2
"""


def days_of(fingerprints: Sequence[str], now: datetime) -> dict[str, list[int]]:
    """Return the failures of each group on each day (UTC), the oldest first; the last day is today."""
    today = now.astimezone(UTC).date()
    first = today - timedelta(days=DAYS - 1)
    since = datetime(first.year, first.month, first.day, tzinfo=UTC)
    found = {fingerprint: [0] * DAYS for fingerprint in fingerprints}
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, {"fingerprints": [*fingerprints], "since": since})
        rows: list[tuple[str, date, int]] = cursor.fetchall()
    for fingerprint, day, count in rows:
        if first <= day <= today:
            found[fingerprint][(day - first).days] += count
    return found
