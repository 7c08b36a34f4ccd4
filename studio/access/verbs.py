"""What users and programs can be allowed to do."""

from __future__ import annotations

from enum import StrEnum


class Verb(StrEnum):
    """What a user can be allowed to do; each verb is a permission of `studio.models.Access`."""

    VIEW = "view"
    OPERATE = "operate"  # start, steer, send events
    APPROVE = "approve"  # answer requests that name nobody
    ADMINISTER = "administer"
