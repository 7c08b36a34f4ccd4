"""Groups of failures that are alike. What failed before has no fingerprint and belongs to none."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models
from django.db.models import CheckConstraint, CompositePrimaryKey, Index, Q

from engine.models.fields import times

EMPTY: dict[str, Any] = {"default": "", "db_default": "", "blank": True}


class Migration(migrations.Migration):
    dependencies = (("engine", "0005_restart"),)

    operations = (
        migrations.CreateModel(
            name="Failure",
            fields=[
                ("fingerprint", models.CharField(max_length=16, primary_key=True, serialize=False)),
                ("kin", models.CharField(max_length=16)),
                ("workflow", models.CharField(max_length=64)),
                ("step", models.CharField(max_length=256, **EMPTY)),
                ("phase", models.CharField(max_length=8, default="do", db_default="do")),
                ("type", models.CharField(max_length=256)),
                ("message", models.CharField(max_length=300, **EMPTY)),
                ("sample", models.TextField(**EMPTY)),
                ("frame", models.CharField(max_length=300, **EMPTY)),
                ("of_attempts", models.BooleanField(default=True, db_default=True)),
                ("first_seen", models.DateTimeField()),
                ("counted_to", models.DateTimeField()),
                ("decision", models.CharField(max_length=8, **EMPTY)),
                ("decided_by", models.CharField(max_length=150, **EMPTY)),
                ("decided_at", models.DateTimeField(null=True)),
                ("reason", models.TextField(**EMPTY)),
                ("ignored_until", models.DateTimeField(null=True)),
                ("ignored_count", models.IntegerField(null=True)),
            ],
            options={
                "db_table": "engine_failure",
                "constraints": [
                    times("engine_failure", "counted_to", "decided_at", "first_seen", "ignored_until"),
                    CheckConstraint(condition=Q(phase__in=["do", "rollback"]), name="engine_failure_phase"),
                    CheckConstraint(
                        condition=Q(decision="", decided_at__isnull=True)
                        | Q(decision__in=["resolved", "ignored"], decided_at__isnull=False),
                        name="engine_failure_decision",
                    ),
                ],
                "indexes": [
                    # The same error in other workflows.
                    Index(fields=["kin"], name="engine_failure_kin"),
                ],
            },
        ),
        migrations.CreateModel(
            name="FailureCount",
            fields=[
                (
                    "pk",
                    CompositePrimaryKey(
                        "fingerprint",
                        "hour",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("fingerprint", models.CharField(max_length=16)),
                ("hour", models.DateTimeField()),
                ("attempts", models.IntegerField()),
            ],
            options={
                "db_table": "engine_failure_count",
                "constraints": [times("engine_failure_count", "hour")],
            },
        ),
        migrations.AddField("attempt", "fingerprint", models.CharField(max_length=16, null=True)),
        migrations.AddField("attempt", "failed_at", models.DateTimeField(null=True)),
        migrations.AddField("instance", "fingerprint", models.CharField(max_length=16, null=True)),
        migrations.RemoveConstraint("attempt", "engine_attempt_times"),
        migrations.AddConstraint(
            "attempt", times("engine_attempt", "failed_at", "finished_at", "started_at")
        ),
        migrations.AddIndex(
            "attempt",
            # The failures of a group, by time: the latest, and how many since a moment.
            Index(
                fields=["fingerprint", "failed_at"],
                condition=Q(fingerprint__isnull=False),
                name="engine_attempt_failed",
            ),
        ),
        migrations.AddIndex(
            "instance",
            # The instances of a group of failures: how many are errored, wait for a retry or went on, and the latest.
            Index(
                fields=["fingerprint", "status", "finished_at"],
                condition=Q(fingerprint__isnull=False),
                include=["waiting_for", "key"],
                name="engine_instance_fingerprint",
            ),
        ),
    )
