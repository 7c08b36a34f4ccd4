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
    role = models.CharField(max_length=8)  # cluster · shift
    name = models.CharField(max_length=100)
    # Of a shift, the number that its session has locked: the `owner` of what it holds. Of a cluster, a negative one.
    worker_id = models.IntegerField(unique=True)
    workflows = ArrayField(models.CharField(max_length=64))
    slots = models.IntegerField()
    held = models.IntegerField(default=0, db_default=0)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        db_table = "engine_worker"
        constraints = [
            times("engine_worker", "seen_at", "started_at"),
        ]

    def __str__(self) -> str:
        return self.name
