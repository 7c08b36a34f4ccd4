"""The instances that fail now as this one does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engine.models import Instance
from engine.status import failures
from engine.status.facts import OpenStep
from studio.instances.visibility import workflows_of_user


@dataclass(frozen=True, slots=True)
class Alike:
    """How many other instances fail with the same error now, and since when any has."""

    fingerprint: str
    others: int
    since: datetime


def alike(instance: Instance, steps: Iterable[OpenStep], user: Any) -> Alike | None:
    """Count them, in the workflows that a user may see; None if the instance itself does not fail now.

    `steps` are its open ones. One that has failed still counts while its next attempt runs: the line must not come and
    go with each attempt.
    """
    is_retrying = instance.status == "waiting" and instance.waiting_for == "retry"
    is_counted = is_retrying or instance.status == "errored"
    tries_again = not instance.is_finished and any(map(_has_failed, steps))
    if instance.fingerprint is None or not (is_counted or tries_again):
        return None
    found = failures.kin(instance.fingerprint, workflows=workflows_of_user(user))
    if not found:
        return None
    failing = sum(group.errored + group.retrying for group in found)
    return Alike(instance.fingerprint, max(0, failing - is_counted), min(group.first_seen for group in found))


def _has_failed(step: OpenStep) -> bool:
    return step.kind == "do" and step.counted > (0 if step.is_waiting else 1)
