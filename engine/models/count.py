"""How many instances of a workflow started and ended, and how long they took, by time."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from engine.models.fields import times

WHAT = ["started", "complete", "errored", "terminated"]
UNITS = ["minute", "hour", "day"]
UNTIMED = -1  # the bucket of starts


class WorkflowCountDelta(models.Model):
    """A change of a count, written with the start or the end itself (`migrations/counters/`).

    Rows are only added: two instances that start or end at once never wait for each other. A worker soon adds them to
    the counts and deletes them.
    """

    key = models.BigAutoField(primary_key=True)
    workflow = models.CharField(max_length=64)
    """The name of the workflow."""
    at = models.DateTimeField()
    """The beginning of the minute."""
    what = models.CharField(max_length=10)
    """What happened: started, complete, errored or terminated."""
    bucket = models.SmallIntegerField(default=UNTIMED, db_default=UNTIMED)
    """How long an ended generation took: from 1.2^bucket ms on, to 1.2 times that; -1 for a start."""
    amount = models.IntegerField()
    """How often; negative if an end is taken back, because a failed rollback is retried."""

    class Meta:
        db_table = "engine_workflow_count_delta"
        constraints = [times("engine_workflow_count_delta", "at")]

    def __str__(self) -> str:
        return f"{self.amount} {self.what} of {self.workflow}"


class WorkflowCount(models.Model):
    """How often something happened in a minute, an hour or a day. It stays when the instances are deleted."""

    pk = models.CompositePrimaryKey("unit", "at", "workflow", "what", "bucket")
    unit = models.CharField(max_length=6)
    """How long the span is: minute, hour or day."""
    at = models.DateTimeField()
    """The beginning of the span, in UTC."""
    workflow = models.CharField(max_length=64)
    """The name of the workflow."""
    what = models.CharField(max_length=10)
    """What happened: started, complete, errored or terminated."""
    bucket = models.SmallIntegerField()
    """How long an ended generation took: from 1.2^bucket ms on, to 1.2 times that; -1 for a start."""
    amount = models.IntegerField()
    """How often."""

    class Meta:
        db_table = "engine_workflow_count"
        constraints = [
            times("engine_workflow_count", "at"),
            models.CheckConstraint(condition=Q(unit__in=UNITS), name="engine_workflow_count_unit"),
            models.CheckConstraint(condition=Q(what__in=WHAT), name="engine_workflow_count_what"),
        ]

    def __str__(self) -> str:
        return f"{self.amount} {self.what} of {self.workflow} in the {self.unit}"
