"""Templates of starts: params that people have named, to begin the start form of a workflow with."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from engine.models.fields import JsonText, times

LONGEST_NAME = 60


class StartTemplate(models.Model):
    """The params of a start with a name, for everyone who may start the workflow.

    `studio.workflows.templates.saving` makes and changes them. They are without secrets, and need not fit the schema:
    what is left out is typed at each start, and a later version of the workflow may ask for something else.
    """

    key = models.BigAutoField(primary_key=True)
    slug = models.CharField(max_length=80, unique=True)
    """Its part of an address. It is not used again when the template is deleted."""
    workflow = models.CharField(max_length=64)
    name = models.CharField(max_length=LONGEST_NAME)
    params = JsonText()
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    """None if they were deleted, which leaves the template in place. The same goes for `changed_by`."""
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    """The last person who saved it."""
    created_at = models.DateTimeField(db_default=Now())
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            times("studio_starttemplate", "created_at", "changed_at"),
            # Also serves the list of a workflow.
            models.UniqueConstraint(fields=["workflow", "name"], name="studio_starttemplate_name"),
        ]

    def __str__(self) -> str:
        return self.name
