"""Failures that are alike: what they share, what people decided about them, how many there were in each hour."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from engine.models.fields import times

DECISIONS = ["", "resolved", "ignored"]


class Failure(models.Model):
    """A group of failures with one fingerprint: the same error at the same place.

    The worker that meets it first writes the row, before the failed attempt or the end of the instance that refers to
    it, and no worker changes it. A failure never updates anything that another failure updates, too.
    """

    fingerprint = models.CharField(max_length=16, primary_key=True)
    """What identifies the group: 16 hex digits."""
    kin = models.CharField(max_length=16)
    """The same digits in every workflow that fails with this error in a step of this name."""
    workflow = models.CharField(max_length=64)
    """The name of the workflow."""
    step = models.CharField(max_length=256, default="", db_default="", blank=True)
    """The name of the step; empty if the handler itself failed."""
    phase = models.CharField(max_length=8, default="do", db_default="do")
    """do: the body, or the handler; rollback: the rollback."""
    type = models.CharField(max_length=256)
    """The name of the error's class."""
    message = models.CharField(max_length=300, default="", db_default="", blank=True)
    """Its message, without what differs from failure to failure. Empty if the step is sensitive."""
    sample = models.TextField(default="", db_default="", blank=True)
    """The first message as it was raised, at most 4,000 characters. Empty if the step is sensitive."""
    frame = models.CharField(max_length=300, default="", db_default="", blank=True)
    """The innermost file and function of the project's own code; empty if there is none."""
    # Whether the failures are attempts. Otherwise they are instances whose handler failed.
    of_attempts = models.BooleanField(default=True, db_default=True)
    first_seen = models.DateTimeField()
    """When the first of these failures happened."""
    # The failures before this moment are counted in engine_failure_count.
    counted_to = models.DateTimeField()

    decision = models.CharField(max_length=8, default="", db_default="", blank=True)
    """What people decided about it: resolved or ignored. Empty if nothing."""
    decided_by = models.CharField(max_length=150, default="", db_default="", blank=True)
    """Who decided that."""
    decided_at = models.DateTimeField(null=True)
    """When."""
    reason = models.TextField(default="", db_default="", blank=True)
    """Why."""
    ignored_until = models.DateTimeField(null=True)
    """Until when it is ignored; NULL without a limit of time."""
    ignored_count = models.IntegerField(null=True)
    """After how many more failures it is no longer ignored; NULL without such a limit."""

    class Meta:
        db_table = "engine_failure"
        constraints = [
            times("engine_failure", "counted_to", "decided_at", "first_seen", "ignored_until"),
            models.CheckConstraint(condition=Q(phase__in=["do", "rollback"]), name="engine_failure_phase"),
            models.CheckConstraint(
                condition=Q(decision="", decided_at__isnull=True)
                | Q(decision__in=DECISIONS[1:], decided_at__isnull=False),
                name="engine_failure_decision",
            ),
        ]
        indexes = [
            # The same error in other workflows.
            models.Index(fields=["kin"], name="engine_failure_kin"),
        ]

    def __str__(self) -> str:
        return f"{self.type} in {self.workflow}" + (f" · {self.step}" if self.step else "")


class FailureCount(models.Model):
    """How many failures a group had in an hour that is over. It stays when their instances are deleted."""

    pk = models.CompositePrimaryKey("fingerprint", "hour")
    fingerprint = models.CharField(max_length=16)
    """The group."""
    hour = models.DateTimeField()
    """The beginning of the hour."""
    attempts = models.IntegerField()
    """The number of failed attempts; of instances, if the handler itself failed."""

    class Meta:
        db_table = "engine_failure_count"
        constraints = [times("engine_failure_count", "hour")]

    def __str__(self) -> str:
        return f"{self.attempts} of {self.fingerprint}"
