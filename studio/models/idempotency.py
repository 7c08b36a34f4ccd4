"""What the HTTP API answered to requests that may be repeated."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class IdempotencyKey(models.Model):
    """A request with an Idempotency-Key and its answer, written in one transaction with what the request did.

    Only `studio.api.idempotency` uses it. It deletes old rows, as `expired.sweep` does.
    """

    key = models.BigAutoField(primary_key=True)
    principal = models.CharField(max_length=80)
    """Who sent it: keys of others are others' business."""
    name = models.CharField(max_length=255)
    """The value of the header."""
    digest = models.CharField(max_length=64)
    """A keyed digest of method, path, query and body, in hexadecimal."""
    status = models.PositiveSmallIntegerField(null=True)
    headers = models.JSONField(default=dict)
    body = models.TextField(default="")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["principal", "name"], name="studio_idempotency_key"),
        ]
        # For deleting old rows.
        indexes = [models.Index(fields=["created_at"], name="studio_idempotency_age")]

    def __str__(self) -> str:
        return f"{self.principal} {self.name}"
