"""How many instances of a workflow started and ended, and how long they took, by time."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from engine.models.fields import times

WHAT = ["started", "complete", "errored", "terminated", "began", "succeeded", "retried"]
UNITS = ["minute", "hour", "day"]
UNTIMED = -1  # the bucket of starts
LENGTHS = [1, 10, 60, 360, 1440]  # of spans, in minutes


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
    """What happened: started, complete, errored or terminated. Workers add from their memory what they ran: began, how
    long an instance was due before its first run; succeeded, an attempt at a step; retried, one after the first."""
    bucket = models.SmallIntegerField(default=UNTIMED, db_default=UNTIMED)
    """How long it took: from 1.2^bucket ms on, to 1.2 times that; -1 if that is not counted. What began took from when
    it was due."""
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


class WorkflowSpan(models.Model):
    """What happened in a workflow within a time, in one row: charts read thousands of them at once.

    Changes of counts are added as they are deleted, in the same transaction (`migrations/0017_charts.py`).
    """

    pk = models.CompositePrimaryKey("minutes", "at", "workflow")
    minutes = models.SmallIntegerField()
    """How long it is: 1, 10, 60, 360 or 1440 minutes."""
    at = models.DateTimeField()
    """Its beginning: a multiple of its length after midnight, UTC."""
    workflow = models.CharField(max_length=64)
    """The name of the workflow."""
    started = models.IntegerField()
    """How many generations were started."""
    complete = models.IntegerField()
    """How many generations completed."""
    errored = models.IntegerField()
    """How many generations failed."""
    terminated = models.IntegerField()
    """How many generations were terminated."""
    retries = models.IntegerField()
    """How many attempts at steps ended that were not the first."""
    latency = ArrayField(models.IntegerField())
    """How many began to run how long after they were due: element n, from 0, from 1.44^n ms on, to 1.44 times that."""
    steps = ArrayField(models.IntegerField())
    """How many attempts at steps succeeded, by how long they took, as for `latency`."""

    class Meta:
        db_table = "engine_workflow_span"
        constraints = [
            times("engine_workflow_span", "at"),
            models.CheckConstraint(condition=Q(minutes__in=LENGTHS), name="engine_workflow_span_minutes"),
        ]

    def __str__(self) -> str:
        return f"{self.minutes} minutes of {self.workflow}"
