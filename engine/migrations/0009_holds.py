"""Workflows that are paused: workers claim only those of their instances that were released."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models
from django.db.models import CheckConstraint, Index, Q

from engine.models.fields import times

EMPTY: dict[str, Any] = {"default": "", "db_default": "", "blank": True}


class Migration(migrations.Migration):
    dependencies = (("engine", "0008_exhausted"),)

    operations = (
        migrations.CreateModel(
            name="PauseRow",
            fields=[
                ("key", models.BigAutoField(primary_key=True, serialize=False)),
                ("workflow", models.CharField(max_length=64, unique=True)),
                ("paused_at", models.DateTimeField()),
                ("paused_by", models.CharField(max_length=150, **EMPTY)),
                ("reason", models.TextField(**EMPTY)),
                ("released", models.BigIntegerField(default=0, db_default=0)),
            ],
            options={
                "db_table": "engine_workflow_pause",
                "constraints": [
                    times("engine_workflow_pause", "paused_at"),
                    CheckConstraint(condition=Q(released__gte=0), name="engine_workflow_pause_released"),
                ],
            },
        ),
        # Workers of the earlier version do not name it.
        migrations.AddField("instance", "released_in", models.BigIntegerField(null=True)),
        migrations.AddIndex(
            "instance",
            # The claim among what was released in a pause.
            Index(
                fields=["released_in", "wake_at"],
                condition=Q(released_in__isnull=False, wake_at__isnull=False, owner__isnull=True),
                name="engine_instance_released",
            ),
        ),
    )
