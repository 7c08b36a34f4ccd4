"""Record denied actions in the audit trail, but only a few an hour for each person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from engine.declare.registry import workflows as registry
from engine.models import Instance
from engine.steer import audit
from studio.access import throttle
from studio.access.principals import Principal
from studio.access.throttle import Limit

OF_A_PERSON = 20
WITHIN = timedelta(hours=1)
LAST = "Further denied actions within the hour are not recorded."


@dataclass(frozen=True, slots=True)
class Subject:
    """What an action is about: a workflow, an instance of it, or a schedule of it."""

    workflow: str | None
    id: str = ""
    data: Mapping[str, Any] | None = None


def record(verb: str, subject: Subject, user: Any) -> None:
    """Write a row about a denied action. Actions on what does not exist are not recorded."""
    if subject.workflow is None:
        return
    if subject.id:
        instance = Instance.objects.filter(workflow=subject.workflow, id=subject.id).first()
        if instance is not None:
            record_for_instance(verb, instance, user)
    elif subject.workflow in registry or subject.data:
        cause = _cause(user)
        if cause is not None:
            audit.note(verb, subject.workflow, cause, outcome="denied", data=subject.data)


def record_for_instance(
    verb: str, instance: Instance, user: Any, *, data: Mapping[str, Any] | None = None
) -> None:
    """Write a row about a denied action on an instance."""
    cause, status = _cause(user), instance.status
    if cause is not None:
        audit.write(verb, [instance], cause, before=status, after=status, outcome="denied", data=data)


def _cause(user: Any) -> audit.Cause | None:
    """Return who acted; the last row says that no more follow. Return None after that."""
    who = user.key if isinstance(user, Principal) and user.owner is None else user.pk
    (count,) = throttle.count([Limit(f"denied actions of {who}", OF_A_PERSON, WITHIN)])
    if count.is_over:
        return None
    return audit.Cause.of(user, LAST if count.n == OF_A_PERSON else "")
