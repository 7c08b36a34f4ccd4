"""Webhooks: where other systems deliver, and what became of each delivery."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import models
from django.db.models.functions import Now

from engine.models.fields import times


class Webhook(models.Model):
    """An address to which another system delivers, and what a delivery does.

    `studio.webhooks.hooks` makes and changes them. The texts that say what is taken from a delivery are read by
    `studio.webhooks.mapping`.
    """

    key = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=64, unique=True)
    slug = models.CharField(max_length=80, unique=True)
    """The last part of its address."""
    scheme = models.CharField(max_length=16)
    """How the sender proves that a delivery is from it: a name of `studio.webhooks.schemes`."""
    secret_header = models.CharField(max_length=64, default="", blank=True)
    """Of a shared secret."""
    delivery_id_from = models.CharField(max_length=500, default="", blank=True)
    """Where a sender with a shared secret puts the id of a delivery."""
    secret = models.TextField()
    """Encrypted with the project's keys."""
    old_secret = models.TextField(default="", blank=True)
    """The secret before the last rotation, which is valid until `old_secret_until`."""
    old_secret_until = models.DateTimeField(null=True)

    action = models.CharField(max_length=8)
    """start or event."""
    workflow = models.CharField(max_length=64)
    id_from = models.TextField(default="", blank=True)
    type_from = models.TextField(default="", blank=True)
    dedup_from = models.TextField(default="", blank=True)
    tags_from = models.TextField(default="", blank=True)
    payload_from = models.TextField(default="", blank=True)
    only_if = models.TextField(default="", blank=True)
    example = models.TextField(default="", blank=True)
    """A payload to try the mapping on, and for tests."""
    example_headers = models.TextField(default="", blank=True)
    per_minute = models.PositiveIntegerField(default=600)
    """Deliveries that are accepted in a minute."""

    paused_at = models.DateTimeField(null=True)
    paused_by = models.CharField(max_length=150, default="", blank=True)
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.CharField(max_length=150)
    refused = models.BigIntegerField(default=0)
    """Requests that were not signed with the secret."""
    refused_at = models.DateTimeField(null=True)
    refused_because = models.CharField(max_length=200, default="", blank=True)

    class Meta:
        constraints = [
            times("studio_webhook", "old_secret_until", "paused_at", "created_at", "refused_at"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_paused(self) -> bool:
        return self.paused_at is not None

    @property
    def starts(self) -> bool:
        return self.action == "start"

    def has_old_secret_at(self, now: datetime) -> bool:
        """Return whether the secret before the last rotation is still valid."""
        return bool(self.old_secret) and self.old_secret_until is not None and now < self.old_secret_until


class WebhookDelivery(models.Model):
    """A delivery whose signature was right, and its outcome, written in one transaction with what it did."""

    key = models.BigAutoField(primary_key=True)
    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries")
    delivery_id = models.CharField(max_length=300)
    """The sender's id, or a digest of the body."""
    received_at = models.DateTimeField(db_default=Now())
    last_at = models.DateTimeField(db_default=Now())
    """When it came last: senders repeat deliveries."""
    count = models.PositiveIntegerField(default=1)
    """How often it came."""
    outcome = models.CharField(max_length=10, default="")
    """done, known (there was such an instance or event), ignored or refused."""
    status = models.PositiveSmallIntegerField(default=0)
    """The status of the answer."""
    code = models.CharField(max_length=64, default="", blank=True)
    error = models.TextField(default="", blank=True)
    workflow = models.CharField(max_length=64, default="", blank=True)
    instance_id = models.CharField(max_length=100, default="", blank=True)
    event_type = models.CharField(max_length=100, default="", blank=True)
    size = models.PositiveIntegerField(default=0)
    body = models.TextField(null=True)  # noqa: DJ001  NULL: it is not kept any more
    """The body, encrypted with the project's keys; it may hold secrets."""
    is_secret = models.BooleanField(default=False)
    """Whether the body may hold secrets, by the hook as it was; then no page shows it."""
    headers = models.JSONField(default=dict)
    """Headers that the mapping reads."""
    is_test = models.BooleanField(default=False)
    again_of = models.BigIntegerField(null=True)
    """The delivery that a person has sent again."""
    sent_by = models.CharField(max_length=150, default="", blank=True)
    """The person who sent it again, or as a test."""

    if TYPE_CHECKING:
        webhook_id: int

    class Meta:
        constraints = [
            times("studio_webhookdelivery", "received_at", "last_at"),
            models.UniqueConstraint(fields=["webhook", "delivery_id"], name="studio_delivery_id"),
        ]
        indexes = [
            # The page of a hook, and its sweeper.
            models.Index(fields=["webhook", "-key"], name="studio_delivery_newest"),
            # Bodies that are still kept.
            models.Index(
                fields=["webhook", "key"],
                condition=models.Q(body__isnull=False),
                name="studio_delivery_bodies",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.webhook_id} {self.delivery_id}"
