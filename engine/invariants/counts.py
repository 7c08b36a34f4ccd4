"""Invariants of what is counted of workflows."""

from __future__ import annotations

from engine.invariants.invariant import Invariant

# What happened before the counters came is not counted, and old counts are deleted.
_SINCE = """
    SELECT greatest(applied + %(skew)s * interval '1 second', clock_timestamp() - interval '89 days')
    FROM django_migrations WHERE app = 'engine' AND name = '0011_counters'
"""
_HAPPENED = """
    SELECT workflow, created_at AS at, 'started' AS what FROM engine_instance
    UNION ALL SELECT workflow, finished_at, status FROM engine_instance
    UNION ALL SELECT i.workflow, g.finished_at, g.status
    FROM engine_generation g JOIN engine_instance i ON i.key = g.instance_id
"""
_COUNTED = """
    SELECT workflow, at AS hour, what, bucket, amount FROM engine_workflow_count WHERE unit = 'hour'
    UNION ALL
    SELECT workflow, date_trunc('hour', at, 'UTC'), what, bucket, amount FROM engine_workflow_count_delta
"""

_DAYS = """
    SELECT workflow, at, what, amount FROM engine_workflow_count WHERE unit = 'day'
    UNION ALL
    SELECT s.workflow, s.at, sums.what, -sums.amount FROM engine_workflow_span s CROSS JOIN LATERAL (
        VALUES ('started', s.started), ('complete', s.complete), ('errored', s.errored), ('terminated', s.terminated)
    ) AS sums (what, amount) WHERE s.minutes = 1440
"""

INVARIANTS = (
    Invariant(
        "I19",
        "starts-and-ends-are-counted",
        "The counts of an hour are at least what is left of what started and ended in it, and never negative.",
        f"""
        SELECT 0::bigint, format('%%s %%s at %%s: %%s of %%s', workflow, what, hour, coalesce(c.amount, 0), h.found)
        FROM (
            SELECT workflow, date_trunc('hour', at, 'UTC') AS hour, what, count(*) AS found
            FROM ({_HAPPENED}) AS happened WHERE at >= ({_SINCE}) GROUP BY 1, 2, 3
        ) AS h
        LEFT JOIN (
            SELECT workflow, hour, what, sum(amount) AS amount FROM ({_COUNTED}) AS counted GROUP BY 1, 2, 3
        ) AS c USING (workflow, hour, what)
        WHERE coalesce(c.amount, 0) < h.found
        UNION ALL
        SELECT 0::bigint, format('%%s %%s at %%s: %%s of bucket %%s', workflow, what, hour, sum(amount), bucket)
        FROM ({_COUNTED}) AS counted WHERE hour >= ({_SINCE}) GROUP BY workflow, what, hour, bucket
        HAVING sum(amount) < 0
        UNION ALL
        SELECT 0::bigint, format('%%s %%s of a %%s at %%s', workflow, what, unit, at)
        FROM engine_workflow_count WHERE at <> date_trunc(unit, at, 'UTC')
        """,
    ),
    Invariant(
        "I19",
        "spans-are-counted",
        "The spans of charts have as many starts and ends as the counts of days.",
        f"""
        SELECT 0::bigint, format('%%s %%s on %%s: %%s more in the counts', workflow, what, at, sum(amount))
        FROM ({_DAYS}) AS days
        WHERE at >= clock_timestamp() - interval '89 days' AND what IN ('started', 'complete', 'errored', 'terminated')
        GROUP BY workflow, what, at HAVING sum(amount) <> 0
        """,
    ),
)
