"""Which errors a user may see: those of the workflows that the user may see."""

from __future__ import annotations

from typing import Any

from django.http import Http404

from engine.models import Failure
from engine.status import failures
from engine.status.failures import FailureGroup
from studio.access.denied_audit import Subject
from studio.access.permissions import Verb, allowed
from studio.frame.guard import Names
from studio.instances.visibility import workflows_of_user


def relations_of(fingerprint: str, user: Any) -> list[FailureGroup]:
    """Return the groups of an error in all workflows, most errored instances first. Raises Http404."""
    workflows = workflows_of_user(user)
    found = failures.kin(fingerprint, workflows=workflows)
    if not any(one.fingerprint == fingerprint for one in found):
        raise Http404
    return found


def count_open(user: Any) -> int:
    """Count the open groups that a user may see."""
    return failures.count_open(workflows=workflows_of_user(user)) if allowed(user, Verb.VIEW, None) else 0


def subject_of(names: Names) -> Subject:
    """Return the subject of the addresses of an error, for the audit trail."""
    fingerprint = names.get("fingerprint", "")
    workflow = Failure.objects.filter(fingerprint=fingerprint).values_list("workflow", flat=True).first()
    return Subject(workflow, data={"error": fingerprint}) if workflow else Subject(None)
