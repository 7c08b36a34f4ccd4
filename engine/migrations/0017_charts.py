"""What charts read: counts by time of what started and ended, of how long steps took, and of retries.

Latencies, durations of steps and retries are counted from now on. What started and ended before was counted by minute,
hour and day, and is kept.
"""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models import CheckConstraint, CompositePrimaryKey, Q

from engine.models.fields import times

COMPOSITE: dict[str, Any] = {"blank": True, "editable": False, "primary_key": True, "serialize": False}
WHAT = ["started", "complete", "errored", "terminated", "began", "succeeded", "retried"]

BUCKETS = 56  # each 1.44 times as wide as the one before: from 1 ms to 8 days
OUTCOMES = ("complete", "errored", "terminated")
COUNTS = {**{what: what for what in ("started", *OUTCOMES)}, "retries": "retried"}
HISTOGRAMS = {"latency": "began", "steps": "succeeded"}

_BEGINNING = "date_bin(span.minutes * interval '1 minute', {at}, timestamptz '2000-01-01 00:00:00+00')"
_COLUMNS = ", ".join([*COUNTS, *HISTOGRAMS])


def _sum(condition: str) -> str:
    return f"coalesce(sum(amount) FILTER (WHERE {condition}), 0)"


def _histogram(what: str) -> str:
    sums = [_sum(f"what = '{what}' AND bucket = {n}") for n in range(BUCKETS)]
    return f"ARRAY[{', '.join(sums)}]"


def _added(column: str) -> str:
    return f"ARRAY[{', '.join(f'c.{column}[{n}] + excluded.{column}[{n}]' for n in range(1, BUCKETS + 1))}]"


_SUMS = ",\n            ".join(
    [
        *(_sum(f"what = '{what}'") for what in COUNTS.values()),
        *(_histogram(what) for what in HISTOGRAMS.values()),
    ]
)
_SET = ",\n        ".join(
    [f"{column} = c.{column} + excluded.{column}" for column in COUNTS]
    + [f"{column} = {_added(column)}" for column in HISTOGRAMS]
)

# How long spans of so many minutes are kept: older changes are not added to them. And where the first ones come from.
_SPANS = """
    (1, interval '26 hours', 'minute'), (10, '50 hours', 'minute'), (60, '8 days', 'hour'), (360, '91 days', 'hour'),
    (1440, '91 days', 'day')
"""

# Whoever takes a change away adds it here in the same transaction: also a worker of the version before, which does not
# know of spans. They are written in the order of their keys, and last: two workers cannot deadlock.
ADD = f"""
CREATE OR REPLACE FUNCTION engine_add_to_spans() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO engine_workflow_span AS c (minutes, at, workflow, {_COLUMNS})
    SELECT span.minutes, {_BEGINNING.format(at="changed.at")}, changed.workflow,
            {_SUMS}
    FROM (
        SELECT workflow, at, what, CASE WHEN bucket < 0 THEN -1 ELSE least(bucket / 2, {BUCKETS - 1}) END AS bucket,
            sum(amount) AS amount
        FROM taken GROUP BY 1, 2, 3, 4
    ) AS changed
    JOIN (VALUES {_SPANS}) AS span (minutes, kept, unit) ON changed.at >= clock_timestamp() - span.kept
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (minutes, at, workflow) DO UPDATE SET
        {_SET};
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER engine_workflow_count_delta_is_added AFTER DELETE ON engine_workflow_count_delta
REFERENCING OLD TABLE AS taken FOR EACH STATEMENT
EXECUTE FUNCTION engine_add_to_spans();

ALTER TABLE engine_workflow_span
SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
"""  # noqa: S608

_ZEROS = f"array_fill(0, ARRAY[{BUCKETS}])"

# What was counted before: what started, when it was started. Nothing is added meanwhile, because the trigger above has
# locked the changes.
FILL = f"""
INSERT INTO engine_workflow_span (minutes, at, workflow, {_COLUMNS})
SELECT span.minutes, {_BEGINNING.format(at="c.at")}, c.workflow,
    {", ".join(_sum(f"what = '{what}'") for what in ("started", *OUTCOMES))}, 0, {_ZEROS}, {_ZEROS}
FROM engine_workflow_count c
JOIN (VALUES {_SPANS}) AS span (minutes, kept, unit)
    ON c.unit = span.unit AND c.at >= clock_timestamp() - span.kept
GROUP BY 1, 2, 3;
"""  # noqa: S608


class Migration(migrations.Migration):
    dependencies = (("engine", "0016_code"),)

    operations = (
        migrations.CreateModel(
            name="WorkflowSpan",
            fields=[
                ("pk", CompositePrimaryKey("minutes", "at", "workflow", **COMPOSITE)),
                ("minutes", models.SmallIntegerField()),
                ("at", models.DateTimeField()),
                ("workflow", models.CharField(max_length=64)),
                ("started", models.IntegerField()),
                ("complete", models.IntegerField()),
                ("errored", models.IntegerField()),
                ("terminated", models.IntegerField()),
                ("retries", models.IntegerField()),
                ("latency", ArrayField(models.IntegerField())),
                ("steps", ArrayField(models.IntegerField())),
            ],
            options={
                "db_table": "engine_workflow_span",
                "constraints": [
                    times("engine_workflow_span", "at"),
                    CheckConstraint(
                        condition=Q(minutes__in=[1, 10, 60, 360, 1440]), name="engine_workflow_span_minutes"
                    ),
                ],
            },
        ),
        # A worker of the version before adds up the new counts, too, though nobody reads them there.
        migrations.RemoveConstraint("workflowcount", "engine_workflow_count_what"),
        migrations.AddConstraint(
            "workflowcount", CheckConstraint(condition=Q(what__in=WHAT), name="engine_workflow_count_what")
        ),
        migrations.RunSQL(
            migrations.RunSQL.noop,
            [
                "DELETE FROM engine_workflow_count_delta WHERE what IN ('began', 'succeeded', 'retried')",
                "DELETE FROM engine_workflow_count WHERE what IN ('began', 'succeeded', 'retried')",
            ],
        ),
        migrations.RunSQL(ADD + FILL, "DROP FUNCTION engine_add_to_spans() CASCADE"),
    )
