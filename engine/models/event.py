"""Messages to an instance."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from engine.models.fields import JsonField, times


class Event(models.Model):
    """A message to an instance, buffered until exactly one wait consumes it, in order of arrival.

    The sender locks the instance's row before it inserts, so `key` is that order.
    """

    key = models.BigAutoField(primary_key=True)
    instance = models.ForeignKey(
        "engine.Instance",
        on_delete=models.CASCADE,
        related_name="events",
        db_constraint=False,
        db_index=False,
    )
    type = models.CharField(max_length=100)
    """Its type."""
    payload = JsonField()
    """Its payload, as JSON."""
    # NULL, not empty: only given keys must be unique.
    dedup_key = models.CharField(max_length=255, null=True)  # noqa: DJ001
    """The key that makes repeated sends one event, or NULL."""
    sent_by = models.CharField(max_length=150, default="", db_default="", blank=True)
    """The user or program that sent it, or empty."""
    received_at = models.DateTimeField()
    """When it was sent."""
    state = models.CharField(max_length=8, default="buffered", db_default="buffered")
    """buffered, consumed or dropped: see docs/reference/states.md."""
    consumed_generation = models.IntegerField(null=True)
    """The generation whose wait consumed it."""
    consumed_by = models.IntegerField(null=True)  # the step's seq
    """The `seq` of the step that consumed it."""

    class Meta:
        db_table = "engine_event"
        constraints = [
            times("engine_event", "received_at"),
            models.UniqueConstraint(
                fields=["instance", "dedup_key"],
                condition=Q(dedup_key__isnull=False),
                name="engine_event_dedup",
            ),
            models.CheckConstraint(
                condition=Q(state="consumed", consumed_by__isnull=False, consumed_generation__isnull=False)
                | Q(state__in=["buffered", "dropped"], consumed_by__isnull=True),
                name="engine_event_state",
            ),
            models.UniqueConstraint(
                fields=["instance", "consumed_generation", "consumed_by"],
                condition=Q(state="consumed"),
                name="engine_event_one_per_wait",
            ),
        ]
        indexes = [
            # The Studio's list of an instance's events.
            models.Index(fields=["instance", "key"], name="engine_event_order"),
            # The events that a wait may take, oldest first, and their number. Consumed ones are excluded: their number
            # only grows.
            models.Index(
                fields=["instance", "key"], condition=Q(state="buffered"), name="engine_event_buffered"
            ),
        ]

    def __str__(self) -> str:
        return self.type
