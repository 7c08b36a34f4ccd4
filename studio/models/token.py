"""Tokens: how programs sign in to the HTTP API."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from engine.models.fields import times


class Token(models.Model):
    """A secret that a program sends instead of a password. Only its digest is stored.

    A personal token acts for its owner, and can do what its scope and its owner's permissions both allow at that
    moment. A team token has no owner; its scope alone decides. `studio.access.tokens` issues, finds and revokes them.
    """

    key = models.BigAutoField(primary_key=True)
    prefix = models.CharField(max_length=12, unique=True)
    """The part of the token that is shown, and by which it is found."""
    digest = models.CharField(max_length=64)
    """SHA-256 of the whole token, in hexadecimal."""
    name = models.CharField(max_length=64)
    """What people call it; unique among the tokens of its owner, or among team tokens, that are not revoked."""
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+")
    """The person it acts for; none for a team token."""
    owner_marks: ArrayField[list[str], list[str]] = ArrayField(
        models.CharField(max_length=64), default=list, blank=True
    )
    """Digests of the hashes of its owner's password, of which there are several if it was hashed anew: another password
    ends the token."""
    verbs = models.JSONField()
    """The verbs it may use, of `studio.access.permissions.Verb`."""
    workflows = models.JSONField()
    """Patterns of names of workflows, such as `order-*`."""
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.CharField(max_length=150)
    """The name of the person who made it."""
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    """Accurate to a minute."""
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.CharField(max_length=150, default="", blank=True)

    class Meta:
        constraints = [
            times("studio_token", "created_at", "expires_at", "last_used_at", "revoked_at"),
            # Two, because Django asks the database before it checks one without distinct nulls.
            models.UniqueConstraint(
                fields=["owner", "name"],
                condition=models.Q(revoked_at=None),
                name="studio_token_name",
            ),
            models.UniqueConstraint(
                fields=["name"],
                condition=models.Q(revoked_at=None, owner=None),
                name="studio_token_team_name",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def is_valid_at(self, now: datetime) -> bool:
        """Return whether it is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
