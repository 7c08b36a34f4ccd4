"""Bulk jobs: what was asked for, and each instance that it was asked for or that it is to start."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from engine.models.fields import JsonField, JsonText, times

OUTCOMES = ["open", "done", "skipped", "failed"]


class BulkJob(models.Model):
    """One action on many instances. An instance of the workflow `reprise.bulk` with the same id works on it."""

    key = models.BigAutoField(primary_key=True)
    id = models.CharField(max_length=100)
    """Its id."""
    action = models.CharField(max_length=16)
    """What it does to each instance: retry, pause, resume, terminate, restart or start."""
    arguments = JsonField()
    """How: `rollback` of terminate, `keys` of restart, and the `pace`."""
    query = models.TextField(default="", db_default="", blank=True)
    """The search that found the instances; empty if they were named."""
    actor = models.CharField(max_length=150, default="", db_default="", blank=True)
    """The user or program that started it, as in the audit trail."""
    user_key = models.CharField(max_length=64, default="", db_default="", blank=True)
    """The primary key of the user, as text; empty for a program."""
    reason = models.TextField(default="", db_default="", blank=True)
    """Why, as the person or program said."""
    # The items by outcome. A batch changes them together with its items.
    total = models.IntegerField(default=0, db_default=0)
    """How many instances it is about."""
    done = models.IntegerField(default=0, db_default=0)
    """To how many it was done."""
    skipped = models.IntegerField(default=0, db_default=0)
    """How many it did not apply to."""
    failed = models.IntegerField(default=0, db_default=0)
    """At how many it failed."""
    created_at = models.DateTimeField(db_default=Now())
    """When it was started, and the instances were chosen."""
    paused_at = models.DateTimeField(null=True)
    """Since when it is paused."""
    aborted_at = models.DateTimeField(null=True)
    """When it was aborted."""
    finished_at = models.DateTimeField(null=True)
    """When nothing was left to do."""

    class Meta:
        db_table = "engine_bulk_job"
        constraints = [
            times("engine_bulk_job", "aborted_at", "created_at", "finished_at", "paused_at"),
            # One job, by its id.
            models.UniqueConstraint(fields=["id"], name="engine_bulk_job_id"),
            models.CheckConstraint(
                condition=Q(total__gte=models.F("done") + models.F("skipped") + models.F("failed")),
                name="engine_bulk_job_counts",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.id}"


class BulkItem(models.Model):
    """An instance of a bulk job, as it was when the job was started, and what became of it."""

    pk = models.CompositePrimaryKey("job_id", "position")
    job = models.ForeignKey(
        BulkJob, on_delete=models.CASCADE, related_name="items", db_constraint=False, db_index=False
    )
    position = models.IntegerField()
    """Its number, in the order in which the instances were started."""
    instance_key = models.BigIntegerField(null=True)
    """NULL until it is started, in a job that starts instances."""
    workflow = models.CharField(max_length=64)
    """The name of the workflow."""
    instance_id = models.CharField(max_length=100)
    """The id of the instance."""
    generation = models.IntegerField()
    """Its generation when the job was started, or when it had failed again. The job leaves later ones alone."""
    new = JsonText(null=True)
    """What is to be started, ready to be written; NULL once it is, and for instances that there were."""
    outcome = models.CharField(max_length=8, default="open", db_default="open")
    """open, done, skipped or failed."""
    code = models.CharField(max_length=64, default="", db_default="", blank=True)
    """Why it was skipped or failed, as a word."""
    message = models.TextField(default="", db_default="", blank=True)
    """The message of the error, if it failed."""
    # How often another transaction held the instance. Others come first.
    tries = models.IntegerField(default=0, db_default=0)
    at = models.DateTimeField(null=True)
    """When that was recorded; NULL while it is open."""

    class Meta:
        db_table = "engine_bulk_item"
        constraints = [
            times("engine_bulk_item", "at"),
            models.CheckConstraint(
                condition=Q(outcome="open", at__isnull=True) | Q(outcome__in=OUTCOMES[1:], at__isnull=False),
                name="engine_bulk_item_outcome",
            ),
        ]
        indexes = [
            # The next batch.
            models.Index(
                fields=["job", "tries", "position"], condition=Q(outcome="open"), name="engine_bulk_item_open"
            ),
            # Pages of the items with one outcome.
            models.Index(fields=["job", "outcome", "position"], name="engine_bulk_item_listed"),
            # The latest results: how fast the job is.
            models.Index(
                fields=["job", "-at"], condition=Q(at__isnull=False), name="engine_bulk_item_latest"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workflow}/{self.instance_id}: {self.outcome}"
