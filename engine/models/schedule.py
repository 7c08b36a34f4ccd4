"""When a workflow is started automatically."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from engine.models.fields import JsonField, times


class ScheduleRow(models.Model):
    """A schedule that the code declares or declared. `next_at` is the next planned time, NULL if there is none."""

    key = models.BigAutoField(primary_key=True)
    workflow = models.CharField(max_length=64)
    """The name of its workflow."""
    name = models.CharField(max_length=100)
    """Its name, unique per workflow."""
    expression = models.CharField(max_length=100)
    """The cron expression."""
    timezone = models.CharField(max_length=64)
    """The IANA name of its time zone."""
    params = JsonField(null=True)
    """The params of each instance, as JSON."""
    is_declared = models.BooleanField(default=True, db_default=True)
    """False once the code no longer declares it: kept for display, and never due."""
    paused_at = models.DateTimeField(null=True)
    """When it was paused, or NULL."""
    paused_by = models.CharField(max_length=150, default="", db_default="", blank=True)
    """Who paused it."""
    next_at = models.DateTimeField(null=True)
    """The next planned time; NULL if it is paused or no longer declared."""
    last_planned_at = models.DateTimeField(null=True)
    """The planned time of the latest start."""
    last_instance_key = models.BigIntegerField(null=True)  # by value: the instance may be gone
    last_missed = models.IntegerField(default=0, db_default=0)
    """How many planned times had passed without a running cluster before the latest start."""
    last_error = models.TextField(default="", db_default="", blank=True)
    """Why the latest start failed, or empty."""
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "engine_schedule"
        constraints = [
            times("engine_schedule", "created_at", "last_planned_at", "next_at", "paused_at"),
            models.UniqueConstraint(fields=["workflow", "name"], name="engine_schedule_name"),
            models.CheckConstraint(
                condition=Q(next_at__isnull=True) | Q(is_declared=True, paused_at__isnull=True),
                name="engine_schedule_still",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workflow}: {self.name}"
