"""The rows that refused tries leave in the audit trail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine import audit
from engine.models import Instance
from engine.registry import workflows as registry


@dataclass(frozen=True, slots=True)
class Subject:
    """What somebody wanted to do something to: a workflow, an instance of it, or a schedule of it."""

    workflow: str | None
    id: str = ""
    data: Mapping[str, Any] | None = None


def note(verb: str, subject: Subject, user: Any) -> None:
    """Leave a row about what somebody wanted to do, and may not."""
    if not subject.id:
        if subject.workflow is not None and (subject.workflow in registry or subject.data):
            audit.note(verb, subject.workflow, audit.Cause.of(user), outcome="denied", data=subject.data)
        return
    instance = Instance.objects.filter(workflow=subject.workflow, id=subject.id).first()
    if instance is not None:
        before = instance.status
        audit.record(verb, instance, by=user, before=before, after=before, outcome="denied")
