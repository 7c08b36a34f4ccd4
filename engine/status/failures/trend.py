"""How often groups of failures have failed: by day, by hour, or in the last hour."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from django.db import connection

from engine.status.gathering import database_now

Unit = Literal["day", "hour", "minutes"]

# The width of a bar, and how many bars there are: two weeks, a day, an hour.
BARS: dict[Unit, tuple[timedelta, int]] = {
    "day": (timedelta(days=1), 14),
    "hour": (timedelta(hours=1), 24),
    "minutes": (timedelta(minutes=3), 20),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Hours that are counted are read from their counts, later failures from the index. Within the last hour the counts are
# too coarse.
_TREND = """
    WITH wanted AS MATERIALIZED (
        SELECT f.fingerprint, f.of_attempts, f.counted_to,
            CASE WHEN %(counts)s THEN greatest(f.counted_to, %(since)s) ELSE %(since)s END AS uncounted
        FROM engine_failure f WHERE f.fingerprint = ANY (%(fingerprints)s)
    ), failed AS (
        SELECT c.hour AS at, c.attempts::bigint AS number
        FROM wanted f JOIN engine_failure_count c USING (fingerprint)
        WHERE %(counts)s AND c.hour >= %(since)s AND c.hour < f.counted_to
        UNION ALL
        SELECT a.failed_at, 1 FROM wanted f JOIN engine_attempt a
            ON a.fingerprint = f.fingerprint AND a.failed_at >= f.uncounted
        WHERE f.of_attempts
        UNION ALL
        SELECT i.finished_at, 1 FROM wanted f JOIN engine_instance i
            ON i.fingerprint = f.fingerprint AND i.status = 'errored' AND i.finished_at >= f.uncounted
        WHERE NOT f.of_attempts
    )
    SELECT least(floor(extract(epoch FROM at - %(since)s) / %(seconds)s)::int, %(last)s) AS bar, sum(number)::bigint
    FROM failed GROUP BY 1
"""


def trend(fingerprints: Collection[str], *, unit: Unit = "day") -> list[tuple[datetime, int]]:
    """Return how often these groups failed together, the earliest first: each bar by its beginning.

    `day` has 14 bars in UTC, `hour` 24, `minutes` 20 of three minutes each. The last one is not over yet.
    """
    width, number = BARS[unit]
    since = _beginning(database_now(), width) - (number - 1) * width
    values: dict[str, Any] = {
        "fingerprints": [*fingerprints],
        "since": since,
        "seconds": width.total_seconds(),
        "last": number - 1,  # what has failed since the clock was read
        "counts": unit != "minutes",
    }
    with connection.cursor() as cursor:
        cursor.execute(_TREND, values)
        failed = dict(cursor.fetchall())
    return [(since + bar * width, int(failed.get(bar, 0))) for bar in range(number)]


def _beginning(moment: datetime, width: timedelta) -> datetime:
    return _EPOCH + (moment - _EPOCH) // width * width
