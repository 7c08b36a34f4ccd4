"""Bulk jobs and their items."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import CheckConstraint, CompositePrimaryKey, F, Index, Q, UniqueConstraint
from django.db.models.functions import Now

from engine.models.fields import JsonField, times

EMPTY: dict[str, Any] = {"default": "", "db_default": "", "blank": True}
NONE: dict[str, Any] = {"default": 0, "db_default": 0}


class Migration(migrations.Migration):
    dependencies = (("engine", "0011_counters"),)

    operations = (
        migrations.CreateModel(
            name="BulkJob",
            fields=[
                ("key", models.BigAutoField(primary_key=True, serialize=False)),
                ("id", models.CharField(max_length=100)),
                ("action", models.CharField(max_length=16)),
                ("arguments", JsonField()),
                ("query", models.TextField(**EMPTY)),
                ("actor", models.CharField(max_length=150, **EMPTY)),
                ("user_key", models.CharField(max_length=64, **EMPTY)),
                ("reason", models.TextField(**EMPTY)),
                ("total", models.IntegerField(**NONE)),
                ("done", models.IntegerField(**NONE)),
                ("skipped", models.IntegerField(**NONE)),
                ("failed", models.IntegerField(**NONE)),
                ("created_at", models.DateTimeField(db_default=Now())),
                ("paused_at", models.DateTimeField(null=True)),
                ("aborted_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "engine_bulk_job",
                "constraints": [
                    times("engine_bulk_job", "aborted_at", "created_at", "finished_at", "paused_at"),
                    # One job, by its id.
                    UniqueConstraint(fields=["id"], name="engine_bulk_job_id"),
                    CheckConstraint(
                        condition=Q(total__gte=F("done") + F("skipped") + F("failed")),
                        name="engine_bulk_job_counts",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BulkItem",
            fields=[
                (
                    "pk",
                    CompositePrimaryKey(
                        "job_id",
                        "position",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="items",
                        to="engine.bulkjob",
                    ),
                ),
                ("position", models.IntegerField()),
                ("instance_key", models.BigIntegerField()),
                ("workflow", models.CharField(max_length=64)),
                ("instance_id", models.CharField(max_length=100)),
                ("generation", models.IntegerField()),
                ("outcome", models.CharField(max_length=8, default="open", db_default="open")),
                ("code", models.CharField(max_length=64, **EMPTY)),
                ("message", models.TextField(**EMPTY)),
                ("tries", models.IntegerField(**NONE)),
                ("at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "engine_bulk_item",
                "constraints": [
                    times("engine_bulk_item", "at"),
                    CheckConstraint(
                        condition=Q(outcome="open", at__isnull=True)
                        | Q(outcome__in=["done", "skipped", "failed"], at__isnull=False),
                        name="engine_bulk_item_outcome",
                    ),
                ],
                "indexes": [
                    # The next batch.
                    Index(
                        fields=["job", "tries", "position"],
                        condition=Q(outcome="open"),
                        name="engine_bulk_item_open",
                    ),
                    # Pages of the items with one outcome.
                    Index(fields=["job", "outcome", "position"], name="engine_bulk_item_listed"),
                    # The latest results: how fast the job is.
                    Index(
                        fields=["job", "-at"],
                        condition=Q(at__isnull=False),
                        name="engine_bulk_item_latest",
                    ),
                ],
            },
        ),
    )
