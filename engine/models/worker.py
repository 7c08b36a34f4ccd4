"""The processes that do the work."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from engine.models.fields import times


class Worker(models.Model):
    """A process that serves workflows: a cluster, or one of its shifts.

    For people only. Ownership is decided by the lock of a worker's session and the lease, never by these rows.
    """

    key = models.BigAutoField(primary_key=True)
    role = models.CharField(max_length=8)
    """cluster or shift; a shift is a worker process that runs workflows."""
    name = models.CharField(max_length=100)
    """The host and the process."""
    worker_id = models.IntegerField(unique=True)
    """Of a shift, the number that its session has locked: the `owner` of what it holds. Of a cluster, a negative
    one."""
    workflows = ArrayField(models.CharField(max_length=64))
    """The names of the workflows that its code declares."""
    slots = models.IntegerField()
    """How many instances it can hold."""
    held = models.IntegerField(default=0, db_default=0)
    """How many it holds."""
    started_at = models.DateTimeField()
    """When it started."""
    seen_at = models.DateTimeField()
    """When it sent its latest heartbeat."""

    class Meta:
        db_table = "engine_worker"
        constraints = [
            times("engine_worker", "seen_at", "started_at"),
        ]

    def __str__(self) -> str:
        return self.name
