"""The instances that fail now as this one does."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engine.models import Instance
from engine.status import failures
from studio.instances.visibility import workflows_of_user


@dataclass(frozen=True, slots=True)
class Alike:
    """How many other instances fail with the same error now, and since when any has."""

    fingerprint: str
    others: int
    since: datetime


def alike(instance: Instance, user: Any) -> Alike | None:
    """Count them, in the workflows that a user may see; None if the instance itself does not fail now."""
    is_retrying = instance.status == "waiting" and instance.waiting_for == "retry"
    if instance.fingerprint is None or not (is_retrying or instance.status == "errored"):
        return None
    found = failures.kin(instance.fingerprint, workflows=workflows_of_user(user))
    if not found:
        return None
    failing = sum(group.errored + group.retrying for group in found)
    return Alike(instance.fingerprint, max(0, failing - 1), min(group.first_seen for group in found))
