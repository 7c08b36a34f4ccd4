"""Counts of what starts and ends, by workflow and time. What happened before is not counted.

Counting it would read every instance: no index leads to those that ended since a moment. Pages say since when is
counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db import migrations, models
from django.db.models import CheckConstraint, CompositePrimaryKey, Index, Q

from engine.models.fields import times

SQL = Path(__file__).parent / "counters"
COMPOSITE: dict[str, Any] = {"blank": True, "editable": False, "primary_key": True, "serialize": False}


class Migration(migrations.Migration):
    dependencies = (("engine", "0010_error_notes"),)

    operations = (
        migrations.CreateModel(
            name="WorkflowCountDelta",
            fields=[
                ("key", models.BigAutoField(primary_key=True, serialize=False)),
                ("workflow", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
                ("what", models.CharField(max_length=10)),
                ("bucket", models.SmallIntegerField(default=-1, db_default=-1)),
                ("amount", models.IntegerField()),
            ],
            options={
                "db_table": "engine_workflow_count_delta",
                "constraints": [times("engine_workflow_count_delta", "at")],
            },
        ),
        migrations.CreateModel(
            name="WorkflowCount",
            fields=[
                ("pk", CompositePrimaryKey("unit", "at", "workflow", "what", "bucket", **COMPOSITE)),
                ("unit", models.CharField(max_length=6)),
                ("at", models.DateTimeField()),
                ("workflow", models.CharField(max_length=64)),
                ("what", models.CharField(max_length=10)),
                ("bucket", models.SmallIntegerField()),
                ("amount", models.IntegerField()),
            ],
            options={
                "db_table": "engine_workflow_count",
                "constraints": [
                    times("engine_workflow_count", "at"),
                    CheckConstraint(
                        condition=Q(unit__in=["minute", "hour", "day"]), name="engine_workflow_count_unit"
                    ),
                    CheckConstraint(
                        condition=Q(what__in=["started", "complete", "errored", "terminated"]),
                        name="engine_workflow_count_what",
                    ),
                ],
            },
        ),
        migrations.AddIndex(
            "instance",
            # What a person has started of a workflow, newest first.
            Index(
                fields=["started_by", "workflow", "-key"],
                condition=~Q(started_by=""),
                name="engine_instance_started_by",
            ),
        ),
        migrations.RunSQL(
            (SQL / "counts.sql").read_text(),
            "DROP FUNCTION engine_count_inserted() CASCADE; DROP FUNCTION engine_count_changed() CASCADE; "
            "DROP FUNCTION engine_generation_began(bigint, int, timestamptz, timestamptz); "
            "DROP FUNCTION engine_duration_bucket(interval)",
        ),
    )
