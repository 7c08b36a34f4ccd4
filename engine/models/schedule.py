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
    name = models.CharField(max_length=100)
    expression = models.CharField(max_length=100)
    timezone = models.CharField(max_length=64)
    params = JsonField(null=True)
    # False once the code no longer declares it: kept for display, and never due.
    is_declared = models.BooleanField(default=True, db_default=True)
    paused_at = models.DateTimeField(null=True)
    paused_by = models.CharField(max_length=150, default="", db_default="", blank=True)
    next_at = models.DateTimeField(null=True)
    last_planned_at = models.DateTimeField(null=True)
    last_instance_key = models.BigIntegerField(null=True)  # by value: the instance may be gone
    last_missed = models.IntegerField(default=0, db_default=0)
    last_error = models.TextField(default="", db_default="", blank=True)
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
