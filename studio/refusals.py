"""The rows that refused tries leave in the audit trail: enough to see who tried what, however often somebody tries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from engine import audit
from engine.models import Instance
from engine.registry import workflows as registry
from studio import throttle
from studio.throttle import Limit

OF_A_PERSON = 20
WITHIN = timedelta(hours=1)
LAST = "Later refusals of this hour are not recorded."


@dataclass(frozen=True, slots=True)
class Subject:
    """What somebody wanted to do something to: a workflow, an instance of it, or a schedule of it."""

    workflow: str | None
    id: str = ""
    data: Mapping[str, Any] | None = None


def note(verb: str, subject: Subject, user: Any) -> None:
    """Leave a row about what somebody wanted to do, and may not. What is not there leaves none."""
    if subject.workflow is None:
        return
    if subject.id:
        instance = Instance.objects.filter(workflow=subject.workflow, id=subject.id).first()
        if instance is not None:
            note_instance(verb, instance, user)
    elif subject.workflow in registry or subject.data:
        cause = _cause(user)
        if cause is not None:
            audit.note(verb, subject.workflow, cause, outcome="denied", data=subject.data)


def note_instance(verb: str, instance: Instance, user: Any, *, data: Mapping[str, Any] | None = None) -> None:
    """Leave a row about what somebody wanted to do to an instance, and may not."""
    cause, status = _cause(user), instance.status
    if cause is not None:
        audit.write(verb, [instance], cause, before=status, after=status, outcome="denied", data=data)


def _cause(user: Any) -> audit.Cause | None:
    """Say who it was, and on the last row that there may be more; None where there were enough."""
    (count,) = throttle.count([Limit(f"refusals of {user.pk}", OF_A_PERSON, WITHIN)])
    if count.is_over:
        return None
    return audit.Cause.of(user, LAST if count.n == OF_A_PERSON else "")
