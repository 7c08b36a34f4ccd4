"""Waits for something outside the instance: for people, and for other instances.

They have tables of their own rather than an index on the steps: an index on a column that every checkpoint changes
would double the cost of each checkpoint.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from engine.models.fields import times


class OpenRequest(models.Model):
    """A request that waits for an answer. A trigger on the steps maintains it: the row goes when the step ends."""

    pk = models.CompositePrimaryKey("instance_id", "generation", "seq")
    instance = models.ForeignKey(
        "engine.Instance",
        on_delete=models.CASCADE,
        related_name="open_requests",
        db_constraint=False,
        db_index=False,
    )
    generation = models.IntegerField()
    """The generation of the request."""
    seq = models.IntegerField()
    """The `seq` of its step, which has the name and the question."""
    opened_at = models.DateTimeField()
    """When the workflow asked."""
    expires_at = models.DateTimeField(null=True)
    """When it expires; NULL for never."""
    assignees = ArrayField(models.CharField(max_length=200), default=list)
    """The names of users, and `group:<name>`, that may answer; empty for everyone."""

    class Meta:
        db_table = "engine_open_request"
        constraints = [
            times("engine_open_request", "expires_at", "opened_at"),
        ]

    def __str__(self) -> str:
        return f"request {self.seq} of {self.instance_id}"


class EndedRequest(models.Model):
    """A request that was answered, expired or withdrawn; its step says which. Maintained by the same trigger.

    The steps have no index to find the latest: every checkpoint would pay for it.
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
    """A step that waits for the end of an instance that is not its child; written and deleted by workers.

    The row stays until the step is over, so that the other instance is not deleted. `told_at` is the end time that was
    reported to the step: an instance may be restarted and end again.
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
            # The waiters to notify when an instance has ended.
            models.Index(fields=["instance"], name="engine_waiter_instance"),
        ]

    def __str__(self) -> str:
        return f"{self.waiter_id} waits for {self.instance_id}"
