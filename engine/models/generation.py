"""How earlier generations of an instance ended."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models

from engine.models.fields import JsonField, times


class Generation(models.Model):
    """How an earlier generation of an instance ended, kept unchanged when the instance is restarted."""

    key = models.BigAutoField(primary_key=True)
    instance = models.ForeignKey("engine.Instance", on_delete=models.CASCADE, related_name="generations")
    number = models.IntegerField()
    """The number, from 1."""
    status = models.CharField(max_length=20)
    """The status in which it ended."""
    params = JsonField(null=True)
    """Its input, if the restart after it changed it; else NULL: that of the next generation."""
    output = JsonField(null=True)
    """What it returned, as JSON."""
    error = JsonField(null=True)
    """Why it failed."""
    pause_reason = JsonField(null=True)
    """Why the engine had paused it, if it ended while paused."""
    rollback = models.CharField(max_length=8, default="", db_default="", blank=True)
    """The state of its rollbacks."""
    unreached = ArrayField(models.IntegerField(), default=list, db_default=[])
    """The numbers of the steps that the code no longer reached."""
    code = models.CharField(max_length=64, default="", db_default="", blank=True)
    """The fingerprint of the handler that it ran with."""
    started_at = models.DateTimeField(null=True)
    """When a worker first ran it."""
    finished_at = models.DateTimeField(null=True)
    """When it ended."""

    class Meta:
        db_table = "engine_generation"
        constraints = [
            times("engine_generation", "finished_at", "started_at"),
            models.UniqueConstraint(fields=["instance", "number"], name="engine_generation_number"),
        ]

    def __str__(self) -> str:
        return f"generation {self.number}"

    @property
    def last_problem(self) -> Any:
        """The recorded error or, if it was ended while paused, the reason why the engine had paused it."""
        return self.pause_reason if self.error is None else self.error
