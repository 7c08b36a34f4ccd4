"""What the Studio itself keeps: the names of its permissions, and counts of what there may not be too many of."""

from __future__ import annotations

from django.db import models


class Access(models.Model):
    """Holds the Studio's permissions and has no table. `studio.access` asks for them."""

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
    """How often something has happened, until a moment; `studio.throttle` reads and writes it, and sweeps it."""

    key = models.CharField(primary_key=True, max_length=64)
    n = models.PositiveIntegerField()
    ends_at = models.DateTimeField()

    class Meta:
        # The sweep looks for what is over.
        indexes = [models.Index(fields=["ends_at"], name="studio_throttle_over")]

    def __str__(self) -> str:
        return f"{self.key[:8]} {self.n} until {self.ends_at}"
