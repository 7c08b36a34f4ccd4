"""Decide who may do what: one function, based on Django's permissions, that denies by default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from engine.steer.requests import Asked, is_put_to


class Verb(StrEnum):
    """What a user can be allowed to do; each verb is a permission of `studio.models.Access`."""

    VIEW = "view"
    OPERATE = "operate"  # start, steer, send events
    APPROVE = "approve"  # answer requests that name nobody
    ADMINISTER = "administer"


# The role that allows a verb; its default group is `reprise-<role>`.
ROLES: Mapping[Verb, str] = {
    Verb.VIEW: "viewer",
    Verb.OPERATE: "operator",
    Verb.APPROVE: "approver",
    Verb.ADMINISTER: "admin",
}


class RefusedError(Exception):
    """A user may not do this."""

    def __init__(self, verb: Verb, workflow: str | None) -> None:
        super().__init__(f"This needs the permission studio.{verb}.")
        self.verb, self.workflow = verb, workflow


def allowed(user: Any, verb: Verb, workflow: str | None) -> bool:
    """Tell whether a user may do this to a workflow, or in general if `workflow` is None.

    Without the permission to view, nothing is allowed. Any authentication backend can grant permissions. A permission
    holds for all workflows; callers pass the workflow all the same, so that a narrower rule has one place: here.
    """
    if not getattr(user, "is_authenticated", False) or not getattr(user, "is_active", False):
        return False
    has_permission = getattr(user, "has_perm", None)
    if has_permission is None:
        return False
    return all(has_permission(f"studio.{needed}") for needed in {Verb.VIEW, verb})


def require(user: Any, verb: Verb, workflow: str | None) -> None:
    """Raise RefusedError unless the user is allowed to."""
    if not allowed(user, verb, workflow):
        raise RefusedError(verb, workflow)


def visible(user: Any, workflows: Iterable[str]) -> list[str]:
    """Return the workflows that a user may see."""
    return [name for name in workflows if allowed(user, Verb.VIEW, name)]


def rights(user: Any) -> frozenset[Verb]:
    """Return everything that decides what a user sees: users with equal rights see the same pages."""
    return frozenset(verb for verb in Verb if allowed(user, verb, None))


def may_answer(asked: Asked, user: Any, workflow: str) -> bool:
    """Tell whether a user may answer a request: an assignee, or any approver if there are no assignees."""
    if not asked.assignees:
        return allowed(user, Verb.APPROVE, workflow)
    return allowed(user, Verb.VIEW, workflow) and is_put_to(asked, user)
