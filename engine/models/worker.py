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
    cluster = models.CharField(max_length=100, default="", db_default="", blank=True)
    """The name of its cluster; empty for a shift without one."""
    cluster_id = models.IntegerField(null=True)
    """The `worker_id` of its cluster. Two clusters may have one name, in a container that was started again."""
    version = models.CharField(max_length=32, default="", db_default="", blank=True)
    """The version of Reprise that it runs."""
    code = models.CharField(max_length=16, default="", db_default="", blank=True)
    """A fingerprint of the handlers that it has loaded: equal code has equal ones."""
    memory = models.BigIntegerField(null=True)
    """The bytes of memory that the process uses, as far as the system says."""
    drained_at = models.DateTimeField(null=True)
    """Since when it drains: it claims nothing. A shift also drains while its cluster does."""
    drained_by = models.CharField(max_length=150, default="", db_default="", blank=True)
    """Who drained it."""
    drain_reason = models.TextField(default="", db_default="", blank=True)
    """Why, as the person or program said."""

    class Meta:
        db_table = "engine_worker"
        constraints = [
            times("engine_worker", "drained_at", "seen_at", "started_at"),
            models.CheckConstraint(
                condition=models.Q(drained_at__isnull=False) | models.Q(drained_by="", drain_reason=""),
                name="engine_worker_drained",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def host(self) -> str:
        return self.name.rpartition(":")[0]

    @property
    def process_id(self) -> int:
        return int(self.name.rpartition(":")[2])
