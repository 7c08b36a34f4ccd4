"""The Studio's permissions."""

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
