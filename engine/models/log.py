"""The log lines of handlers and bodies."""

from __future__ import annotations

from django.db import models

from engine.models.fields import JsonField, times


class Log(models.Model):
    """A structured line of an instance's log.

    Lines of the handler have a `position` among the handler's lines: a replay logs them again, and the engine keeps
    each once. Lines of a body have their step and attempt. Lines that the engine itself logs once have a negative
    position.
    """

    key = models.BigAutoField(primary_key=True)
    instance = models.ForeignKey(
        "engine.Instance", on_delete=models.CASCADE, related_name="logs", db_constraint=False, db_index=False
    )
    generation = models.IntegerField()
    position = models.IntegerField(null=True)
    step_seq = models.IntegerField(null=True)
    attempt = models.IntegerField(null=True)
    level = models.CharField(max_length=8)
    message = models.TextField()
    fields = JsonField(null=True)
    at = models.DateTimeField()

    class Meta:
        db_table = "engine_log"
        constraints = [
            times("engine_log", "at"),
            models.UniqueConstraint(
                fields=["instance", "generation", "position"],
                condition=models.Q(position__isnull=False),
                name="engine_log_once",
            ),
        ]
        indexes = [
            # An instance's log in order.
            models.Index(fields=["instance", "key"], name="engine_log_order"),
        ]

    def __str__(self) -> str:
        return self.message
