"""What is counted of workflows, beside what their rows say: the same, unless instances were deleted."""

from __future__ import annotations

from collections import Counter

from django.db import connection

COUNTED = """
    SELECT workflow, at, what, bucket, sum(amount) FROM (
        SELECT workflow, at, what, bucket, amount FROM engine_workflow_count WHERE unit = 'minute'
        UNION ALL SELECT workflow, at, what, bucket, amount FROM engine_workflow_count_delta
    ) AS counted WHERE what IN ('started', 'complete', 'errored', 'terminated')
    GROUP BY 1, 2, 3, 4 HAVING sum(amount) <> 0
"""
# Starts and ends that were added up, by day: the counts and the spans have the same.
SPANNED = """
    SELECT workflow, at, what, sum(amount)::int FROM (
        SELECT workflow, at, what, amount FROM engine_workflow_count
        WHERE unit = 'day' AND what IN ('started', 'complete', 'errored', 'terminated')
        UNION ALL
        SELECT s.workflow, s.at, sums.what, -sums.amount FROM engine_workflow_span s CROSS JOIN LATERAL (
            VALUES ('started', s.started), ('complete', s.complete), ('errored', s.errored),
                ('terminated', s.terminated)
        ) AS sums (what, amount) WHERE s.minutes = 1440
    ) AS spanned GROUP BY 1, 2, 3 HAVING sum(amount) <> 0
"""
# No row keeps when a restart began the generation.
STARTED = """
    SELECT workflow, date_trunc('minute', created_at, 'UTC'), count(*), sum(generation - 1)::int
    FROM engine_instance GROUP BY 1, 2
"""
ENDED = """
    SELECT workflow, date_trunc('minute', finished_at, 'UTC'), status, count(*) FROM (
        SELECT workflow, finished_at, status FROM engine_instance WHERE finished_at IS NOT NULL
        UNION ALL
        SELECT i.workflow, g.finished_at, g.status
        FROM engine_generation g JOIN engine_instance i ON i.key = g.instance_id
    ) AS ended GROUP BY 1, 2, 3
"""


def counted() -> Counter[tuple[str, str]]:
    """How often each thing happened in each workflow, as it was counted."""
    found: Counter[tuple[str, str]] = Counter()
    for workflow, _, what, _, amount in _rows(COUNTED):
        found[workflow, what] += amount
    return found


def miscounted() -> list[str]:
    """Say what was counted and did not happen, or the other way round: by minute, but restarts in all."""
    ends: Counter[tuple[object, ...]] = Counter()
    starts: Counter[str] = Counter()
    for workflow, at, what, _, amount in _rows(COUNTED):
        if what == "started":
            starts[workflow] += amount
        else:
            ends[workflow, at, what] += amount
    for workflow, _, created, restarted in _rows(STARTED):
        starts[workflow] -= created + restarted
    for *what_ended, amount in _rows(ENDED):
        ends[tuple(what_ended)] -= amount
    wrong: list[tuple[object, int]] = [*starts.items(), *ends.items()]
    for *what_happened, amount in _rows(SPANNED):
        wrong.append((what_happened, int(str(amount))))
    return [f"{what}: {amount:+} counted" for what, amount in wrong if amount]


def _rows(query: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()
