"""The Studio's own models: its permissions, and counts of events that are limited."""

from __future__ import annotations

from django.db import models


class Access(models.Model):
    """The Studio's permissions; there is no table. `studio.access.permissions` checks them."""

    class Meta:
        managed = False
        default_permissions = ()
        permissions = [
            ("view", "Can see workflows, instances and the audit trail"),
            ("operate", "Can start and steer instances"),
            ("approve", "Can answer requests that name nobody"),
            ("administer", "Can administer the Studio"),
        ]

    def __str__(self) -> str:
        return "access"


class Throttle(models.Model):
    """The number of events of one kind until a moment.

    Only `studio.access.throttle` uses it; it deletes expired rows.
    """

    key = models.CharField(primary_key=True, max_length=64)
    n = models.PositiveIntegerField()
    ends_at = models.DateTimeField()

    class Meta:
        # For deleting expired rows.
        indexes = [models.Index(fields=["ends_at"], name="studio_throttle_over")]

    def __str__(self) -> str:
        return f"{self.key[:8]} {self.n} until {self.ends_at}"
