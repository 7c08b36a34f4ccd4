"""The source of a version of a workflow's code."""

from __future__ import annotations

from django.db import models

from engine.models.fields import times


class CodeVersion(models.Model):
    """A version of a handler that workers have run, with its source. It is deleted when no instance can refer to it."""

    pk = models.CompositePrimaryKey("workflow", "code")
    workflow = models.CharField(max_length=64)
    """The name of the workflow."""
    code = models.CharField(max_length=64)
    """The fingerprint of the handler, as instances record it."""
    file = models.TextField()
    """The file of the handler, from the directory that the worker ran in."""
    function = models.TextField()
    """The name of the handler."""
    line = models.IntegerField()
    """The line in which the handler begins, with its decorators."""
    # Lines that the handler does not need are empty.
    text = models.TextField(null=True)  # noqa: DJ001
    """The module with what the handler needs of it; NULL if that is too large to keep."""
    first_seen_at = models.DateTimeField()
    """When a worker first had it."""
    last_seen_at = models.DateTimeField()
    """When a worker last had it, to the day."""

    class Meta:
        db_table = "engine_code"
        constraints = [times("engine_code", "first_seen_at", "last_seen_at")]

    def __str__(self) -> str:
        return f"{self.workflow} {self.code}"
