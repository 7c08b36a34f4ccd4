"""How many instances of workflows started within the last hour, in spans of three minutes: from counts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import connection

SPANS = 20  # of 3 minutes

# The last span ends with the present minute. What is not added up yet is read as well, as for the last 24 hours.
_LAST_HOUR = """
    WITH moment AS MATERIALIZED (
        SELECT date_trunc('minute', coalesce(%(now)s, clock_timestamp()), 'UTC') - interval '59 minutes' AS since
    ), found AS (
        SELECT c.workflow, c.at, c.amount FROM engine_workflow_count c
        WHERE c.unit = 'minute' AND c.at >= (SELECT since FROM moment) AND c.what = 'started'
          AND c.workflow = ANY (%(names)s)
        UNION ALL
        SELECT d.workflow, d.at, d.amount FROM engine_workflow_count_delta d
        WHERE d.at >= (SELECT since FROM moment) AND d.what = 'started' AND d.workflow = ANY (%(names)s)
    )
    SELECT f.workflow, floor(extract(epoch FROM f.at - m.since) / 180)::integer AS span, sum(f.amount)::bigint
    FROM found f CROSS JOIN moment m GROUP BY 1, 2
"""


def started(names: Sequence[str], *, now: datetime | None = None) -> dict[str, tuple[int, ...]]:
    """Return for each workflow how many started in each span, the oldest first, with one query.

    A restart is a start, too. `now` is by default the database's time.
    """
    counts = {name: [0] * SPANS for name in names}
    with connection.cursor() as cursor:
        cursor.execute(_LAST_HOUR, {"names": list(names), "now": now})
        for workflow, span, amount in cursor:
            counts[workflow][min(span, SPANS - 1)] += amount
    return {name: tuple(found) for name, found in counts.items()}
