"""Counts of events that are limited."""

from __future__ import annotations

from django.db import models


class Throttle(models.Model):
    """The number of events of one kind until a moment.

    Only `studio.access.throttle` uses it. It deletes expired rows, as `expired.sweep` does.
    """

    key = models.CharField(primary_key=True, max_length=64)
    n = models.PositiveIntegerField()
    ends_at = models.DateTimeField()

    class Meta:
        # For deleting expired rows.
        indexes = [models.Index(fields=["ends_at"], name="studio_throttle_over")]

    def __str__(self) -> str:
        return f"{self.key[:8]} {self.n} until {self.ends_at}"
