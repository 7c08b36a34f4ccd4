"""Failures that are still to be logged and sent to the receivers of `engine.signals`."""

from __future__ import annotations

from enum import StrEnum

from django.db import models
from django.db.models import Q

from engine.models.fields import times


class NoticeKind(StrEnum):
    """What a notice reports; each kind is the name of a signal."""

    INSTANCE_ERRORED = "instance_errored"
    ROLLBACK_FAILED = "rollback_failed"
    INSTANCE_PAUSED = "instance_paused"
    ATTEMPT_LOST = "attempt_lost"
    WORKER_RETIRED = "worker_retired"


class Notice(models.Model):
    """A row written in the transaction of the failure, and deleted after it was reported.

    Triggers write it, except for `worker_retired`, which the worker writes itself. It holds everything by value: the
    instance may be restarted or deleted before the report. A process takes it until `taken_until` to report it; if
    that process dies, another one reports it again.
    """

    key = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=20)
    at = models.DateTimeField()
    workflow = models.CharField(max_length=64, default="", db_default="", blank=True)
    instance_id = models.CharField(max_length=100, default="", db_default="", blank=True)
    instance_key = models.BigIntegerField(null=True)
    generation = models.IntegerField(default=0, db_default=0)
    step = models.TextField(default="", db_default="", blank=True)
    count = models.IntegerField(default=1, db_default=1)
    attempt = models.IntegerField(default=0, db_default=0)
    phase = models.CharField(max_length=8, default="", db_default="", blank=True)
    worker = models.CharField(max_length=100, default="", db_default="", blank=True)
    error_type = models.TextField(default="", db_default="", blank=True)
    error_message = models.TextField(default="", db_default="", blank=True)
    reason = models.TextField(default="", db_default="", blank=True)
    is_logged = models.BooleanField(default=False, db_default=False)
    taken_until = models.DateTimeField(null=True)

    class Meta:
        db_table = "engine_notice"
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=[str(k) for k in NoticeKind]), name="engine_notice_kind"
            ),
            times("engine_notice", "at", "taken_until"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"
