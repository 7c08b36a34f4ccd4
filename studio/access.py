"""Who may do what: one function decides, from Django's permissions, and says no unless something says yes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from engine.requests import Asked, is_put_to


class Verb(StrEnum):
    """What a person can be allowed to do. Each is the permission `studio.<verb>`; see `studio.models.Access`."""

    VIEW = "view"
    OPERATE = "operate"  # start, steer, send events
    APPROVE = "approve"  # answer requests that name nobody
    ADMINISTER = "administer"


# What people call whoever may. The default group of each is `reprise-<role>`.
ROLES: Mapping[Verb, str] = {
    Verb.VIEW: "viewer",
    Verb.OPERATE: "operator",
    Verb.APPROVE: "approver",
    Verb.ADMINISTER: "admin",
}


class RefusedError(Exception):
    """Somebody asked for what they may not do."""

    def __init__(self, verb: Verb, workflow: str | None) -> None:
        super().__init__(f"This needs the permission studio.{verb}.")
        self.verb, self.workflow = verb, workflow


def allowed(user: Any, verb: Verb, workflow: str | None) -> bool:
    """Tell whether a user may do this to a workflow; `workflow` is None for what concerns no workflow in particular.

    Nothing is allowed without the permission to view. Any authentication backend can grant permissions. Today a
    permission holds for every workflow; callers name the one they mean all the same, so that a narrower rule needs no
    other place than this.
    """
    if not getattr(user, "is_authenticated", False) or not getattr(user, "is_active", False):
        return False
    has_permission = getattr(user, "has_perm", None)
    if has_permission is None:
        return False
    return all(has_permission(f"studio.{needed}") for needed in {Verb.VIEW, verb})


def require(user: Any, verb: Verb, workflow: str | None) -> None:
    """Raise RefusedError unless it is allowed."""
    if not allowed(user, verb, workflow):
        raise RefusedError(verb, workflow)


def visible(user: Any, workflows: Iterable[str]) -> list[str]:
    """Return those workflows that a user may see."""
    return [name for name in workflows if allowed(user, Verb.VIEW, name)]


def rights(user: Any) -> frozenset[Verb]:
    """Return all that decides what a user sees: two users with equal rights are shown the same page."""
    return frozenset(verb for verb in Verb if allowed(user, verb, None))


def may_answer(asked: Asked, user: Any, workflow: str) -> bool:
    """Tell whether a user may answer a request: who was asked, or an approver where nobody in particular was."""
    if not asked.assignees:
        return allowed(user, Verb.APPROVE, workflow)
    return allowed(user, Verb.VIEW, workflow) and is_put_to(asked, user)
