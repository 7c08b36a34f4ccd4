"""Decide who may do what: one function, based on Django's permissions, that denies by default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Q

from engine.steer.requests import Asked, is_put_to
from studio.access.principals import Principal
from studio.access.verbs import Verb as Verb

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
    holds for all workflows, the scope of a token for those that it names; a personal token also needs the permission
    of its owner.
    """
    if isinstance(user, Principal):
        if verb not in user.scope.verbs or not user.scope.covers(workflow):
            return False
        if user.owner_verbs is not None:
            return user.is_active and {Verb.VIEW, verb} <= user.owner_verbs
        return user.owner is None or allowed(user.owner, verb, workflow)
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


def sees_all(user: Any) -> bool:
    """Tell whether a user sees all workflows or none: only the scope of a token names some."""
    return not isinstance(user, Principal) or user.scope.is_for_all


def sees_health(user: Any) -> bool:
    """Tell whether a user may see what `workflow health` says: its counts are of all workflows."""
    return allowed(user, Verb.VIEW, None) and sees_all(user)


def visible_rows(user: Any, column: str = "workflow") -> Q:
    """Return the condition for rows whose workflow a user may see.

    It also holds for workflows that no longer exist. Rows about no workflow are for users who see all of them.
    """
    if not allowed(user, Verb.VIEW, None):
        return Q(pk__in=[])
    return Q() if sees_all(user) else Q(**{f"{column}__regex": user.scope.regex})


def rights(user: Any) -> frozenset[Verb]:
    """Return everything that decides what a user sees: users with equal rights see the same pages."""
    return frozenset(verb for verb in Verb if allowed(user, verb, None))


def may_answer(asked: Asked, user: Any, workflow: str) -> bool:
    """Tell whether a user may answer a request: an assignee, or any approver if there are no assignees.

    A token needs `approve` in its scope. A team token may not answer where people are named, whatever its name.
    """
    if isinstance(user, Principal) and Verb.APPROVE not in user.scope.verbs:
        return False
    if not asked.assignees:
        return allowed(user, Verb.APPROVE, workflow)
    return allowed(user, Verb.VIEW, workflow) and is_put_to(asked, user)
