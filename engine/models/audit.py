"""Who did what."""

from __future__ import annotations

from collections.abc import Collection

from django.db import models
from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now

from engine.models.fields import JsonField, times


class AuditQuerySet(models.QuerySet["Audit"]):
    def deletions(self) -> AuditQuerySet:
        """Return the rows of deletions."""
        # The verb as a literal, as in the index's condition: a cached plan could not use the index for a parameter.
        is_deletion = RawSQL("verb = 'delete'", (), output_field=BooleanField())
        return self.filter(is_deletion, outcome="done")

    def about_errors(self, fingerprints: Collection[str]) -> AuditQuerySet:
        """Return the notes on groups of failures and the decisions about them."""
        # As in the index.
        is_about_one = "verb IN ('error-note', 'error-resolve', 'error-ignore', 'error-reopen')"
        wanted = f"{is_about_one} AND data ->> 'error' = ANY (%s)"
        is_about_these = RawSQL(wanted, (list(fingerprints),), output_field=BooleanField())  # noqa: S611 - constants
        return self.filter(is_about_these)


class Audit(models.Model):
    """An action of a person or a program on an instance. Append-only: the database refuses changes.

    It refers to instances and users by value, so that it outlives both.
    """

    key = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    """When it was done."""
    verb = models.CharField(max_length=32)
    """What was done: pause, resume, terminate, restart, delete, send_event, answer, note, …"""
    actor = models.CharField(max_length=150, default="", blank=True)
    """The user name, or the name of the program; empty if the call had no `by`."""
    user_key = models.CharField(max_length=64, default="", blank=True)
    """The primary key of the user, as text; empty for a program."""
    workflow = models.CharField(max_length=64)
    """The name of the workflow."""
    instance_id = models.CharField(max_length=100)
    """The id of the instance."""
    instance_key = models.BigIntegerField(null=True)
    before = models.CharField(max_length=20, default="", blank=True)
    """The status before."""
    after = models.CharField(max_length=20, default="", blank=True)
    """The status after."""
    outcome = models.CharField(max_length=8, default="done")
    """done; denied if it was refused, such as for lack of a permission."""
    reason = models.TextField(default="", blank=True)
    """Why, as the person or program said. Of a note, its text."""
    data = JsonField(null=True)
    """Details of the action, as JSON."""

    objects = AuditQuerySet.as_manager()

    class Meta:
        db_table = "engine_audit"
        constraints = [
            times("engine_audit", "at"),
        ]
        indexes = [
            # The audit trail of one instance.
            models.Index(fields=["instance_key", "key"], name="engine_audit_instance"),
            # Deletions: who deleted instances that no longer exist.
            models.Index(
                fields=["workflow", "instance_id"],
                condition=Q(verb="delete"),
                name="engine_audit_deleted",
            ),
            # Notes on a group of failures, and decisions about it.
            models.Index(
                RawSQL("(data ->> 'error')", (), output_field=models.TextField()),
                "key",
                condition=Q(verb__in=["error-note", "error-resolve", "error-ignore", "error-reopen"]),
                name="engine_audit_error",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.verb} {self.workflow}/{self.instance_id}"

    @property
    def is_note(self) -> bool:
        """Whether it is a note: `reason` has its text, and `data["mentions"]` the users that it names."""
        return self.verb in ("note", "error-note") and self.outcome == "done"

    @property
    def mentions(self) -> list[str]:
        """The names of the users that a note mentions."""
        return self.data.get("mentions", []) if self.is_note and isinstance(self.data, dict) else []
