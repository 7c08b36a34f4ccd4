"""Workflows of which workers claim nothing."""

from __future__ import annotations

from django.db import models

from engine.models.fields import times


class PauseRow(models.Model):
    """The pause of a workflow: as long as the row exists, no worker claims an instance of it.

    Except those that were released in this pause: `released_in` of such an instance is the key of this row. The key of
    a later pause is another one, so nothing has to be cleared when a pause ends.
    """

    key = models.BigAutoField(primary_key=True)
    workflow = models.CharField(max_length=64, unique=True)
    """The name of the workflow."""
    paused_at = models.DateTimeField()
    """When it was paused."""
    paused_by = models.CharField(max_length=150, default="", db_default="", blank=True)
    """Who paused it; empty for a program."""
    reason = models.TextField(default="", db_default="", blank=True)
    """Why, as the person or program said."""
    released = models.BigIntegerField(default=0, db_default=0)
    """How many instances were released since."""

    class Meta:
        db_table = "engine_workflow_pause"
        constraints = [
            times("engine_workflow_pause", "paused_at"),
            models.CheckConstraint(
                condition=models.Q(released__gte=0), name="engine_workflow_pause_released"
            ),
        ]

    def __str__(self) -> str:
        return self.workflow
