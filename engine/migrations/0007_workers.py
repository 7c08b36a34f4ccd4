"""What a worker says of itself, and that it drains."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models
from django.db.models import CheckConstraint, Q

from engine.models.fields import times

EMPTY: dict[str, Any] = {
    "default": "",
    "db_default": "",
    "blank": True,
}  # workers of the earlier version name none of these columns


class Migration(migrations.Migration):
    dependencies = (("engine", "0006_failures"),)

    operations = (
        migrations.AddField("worker", "cluster", models.CharField(max_length=100, **EMPTY)),
        migrations.AddField("worker", "cluster_id", models.IntegerField(null=True)),
        migrations.AddField("worker", "version", models.CharField(max_length=32, **EMPTY)),
        migrations.AddField("worker", "code", models.CharField(max_length=16, **EMPTY)),
        migrations.AddField("worker", "memory", models.BigIntegerField(null=True)),
        migrations.AddField("worker", "drained_at", models.DateTimeField(null=True)),
        migrations.AddField("worker", "drained_by", models.CharField(max_length=150, **EMPTY)),
        migrations.AddField("worker", "drain_reason", models.TextField(**EMPTY)),
        migrations.RemoveConstraint("worker", "engine_worker_times"),
        migrations.AddConstraint("worker", times("engine_worker", "drained_at", "seen_at", "started_at")),
        migrations.AddConstraint(
            "worker",
            CheckConstraint(
                condition=Q(drained_at__isnull=False) | Q(drained_by="", drain_reason=""),
                name="engine_worker_drained",
            ),
        ),
    )
