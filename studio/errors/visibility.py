"""Which errors a user may see: those of the workflows that the user may see."""

from __future__ import annotations

from typing import Any

from django.http import Http404

from engine import failures
from engine.failures import FailureGroup
from engine.models import Failure
from engine.status.search import workflow_names
from studio.access.denied_audit import Subject
from studio.access.permissions import Verb, allowed, sees_all, visible
from studio.frame.guard import Names


def workflows_of(user: Any) -> list[str] | None:
    """Return the workflows that a user may see; None if that is all."""
    return None if sees_all(user) else visible(user, workflow_names())


def relations_of(fingerprint: str, user: Any) -> list[FailureGroup]:
    """Return the groups of an error in all workflows, most errored instances first. Raises Http404."""
    workflows = workflows_of(user)
    found = failures.kin(fingerprint, workflows=workflows)
    if not any(one.fingerprint == fingerprint for one in found):
        raise Http404
    return found


def count_open(user: Any) -> int:
    """Count the open groups that a user may see."""
    return failures.count_open(workflows=workflows_of(user)) if allowed(user, Verb.VIEW, None) else 0


def subject_of(names: Names) -> Subject:
    """Return the subject of the addresses of an error, for the audit trail."""
    fingerprint = names.get("fingerprint", "")
    workflow = Failure.objects.filter(fingerprint=fingerprint).values_list("workflow", flat=True).first()
    return Subject(workflow, data={"error": fingerprint}) if workflow else Subject(None)
