"""Saved views: searches of the list of instances that people have named."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from engine.models.fields import times

LONGEST_NAME = 60


class SavedView(models.Model):
    """A search with its order and columns, for the person who saved it or for everyone who may view.

    `studio.saved_views.saving` makes and changes them. The search is stored as it was typed: a later version may read
    it differently, or not at all, and then says so.
    """

    key = models.BigAutoField(primary_key=True)
    slug = models.CharField(max_length=80, unique=True)
    """Its part of an address. It stays when the view is renamed, and is not used again when it is deleted."""
    name = models.CharField(max_length=LONGEST_NAME)
    """Unique among the personal views of its owner, or among shared ones."""
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+")
    """The person who has a personal view; none for a shared one."""
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    """The person who saved it; none if they were deleted, which leaves shared views in place."""
    is_shared = models.BooleanField(default=False)
    query = models.TextField(default="", blank=True)
    sort = models.CharField(max_length=32, default="", blank=True)
    """Empty: the newest first."""
    columns = models.TextField(default="", blank=True)
    """Paths such as `params.region,output.total`."""
    position = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            times("studio_savedview", "created_at", "changed_at"),
            models.CheckConstraint(
                condition=models.Q(is_shared=True, owner=None)
                | models.Q(is_shared=False, owner__isnull=False),
                name="studio_savedview_owner",
            ),
            models.UniqueConstraint(
                fields=["owner", "name"],
                condition=models.Q(is_shared=False),
                name="studio_savedview_name",
            ),
            models.UniqueConstraint(
                fields=["name"],
                condition=models.Q(is_shared=True),
                name="studio_savedview_shared_name",
            ),
        ]

    def __str__(self) -> str:
        return self.name
