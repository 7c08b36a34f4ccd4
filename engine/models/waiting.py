"""What waits for something outside of its instance: for people, and for other instances.

Beside the steps and not as an index on them: an index that names a column which every checkpoint changes would make
each of them twice as dear.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from engine.models.fields import times


class OpenRequest(models.Model):
    """A request that waits for its answer. A trigger on the steps keeps it: the row goes when the step ends."""

    pk = models.CompositePrimaryKey("instance_id", "generation", "seq")
    instance = models.ForeignKey(
        "engine.Instance",
        on_delete=models.CASCADE,
        related_name="open_requests",
        db_constraint=False,
        db_index=False,
    )
    generation = models.IntegerField()
    seq = models.IntegerField()
    opened_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    assignees = ArrayField(models.CharField(max_length=200), default=list)

    class Meta:
        db_table = "engine_open_request"
        constraints = [
            times("engine_open_request", "expires_at", "opened_at"),
        ]

    def __str__(self) -> str:
        return f"request {self.seq} of {self.instance_id}"


class EndedRequest(models.Model):
    """A request that was answered, has expired, or was withdrawn: its step says which. Kept by the same trigger.

    The steps have no index by which the latest could be found: every checkpoint would pay for it.
    """

    pk = models.CompositePrimaryKey("instance_id", "generation", "seq")
    instance = models.ForeignKey(
        "engine.Instance",
        on_delete=models.CASCADE,
        related_name="ended_requests",
        db_constraint=False,
        db_index=False,
    )
    generation = models.IntegerField()
    seq = models.IntegerField()
    ended_at = models.DateTimeField()

    class Meta:
        db_table = "engine_ended_request"
        constraints = [
            times("engine_ended_request", "ended_at"),
        ]
        indexes = [
            # The latest, for the inbox.
            models.Index(fields=["-ended_at"], name="engine_ended_request_latest"),
        ]

    def __str__(self) -> str:
        return f"request {self.seq} of {self.instance_id}"


class Waiter(models.Model):
    """A step that waits for the end of an instance which is not its child; written and taken away by the workers.

    The row stays until the step is over, so that nobody deletes what it waits for. `told_at` is the end that the step
    has been told of: an instance may be restarted, and end again.
    """

    pk = models.CompositePrimaryKey("waiter_id", "generation", "seq")
    waiter = models.ForeignKey(
        "engine.Instance", on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    generation = models.IntegerField()
    seq = models.IntegerField()
    instance = models.ForeignKey(
        "engine.Instance",
        on_delete=models.CASCADE,
        related_name="waiters",
        db_constraint=False,
        db_index=False,
    )
    told_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "engine_waiter"
        constraints = [
            times("engine_waiter", "told_at"),
        ]
        indexes = [
            # Who is to be told when an instance has ended.
            models.Index(fields=["instance"], name="engine_waiter_instance"),
        ]

    def __str__(self) -> str:
        return f"{self.waiter_id} waits for {self.instance_id}"
