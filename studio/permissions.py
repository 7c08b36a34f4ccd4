"""Who may do what: roles are Django groups, every route names the role it needs, what is not named is refused."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from engine.requests import Asked, is_put_to


class Role(IntEnum):
    """Each role may do all that the ones before it may."""

    NOBODY = 0
    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        return self.name.lower()


GROUPS: Mapping[str, Role] = {
    "viewer": Role.VIEWER,
    "operator": Role.OPERATOR,
    "admin": Role.ADMIN,
}

# Reached without signing in.
PUBLIC = frozenset({"sign-in", "sign-out", "theme"})

# Route → (role to read, role to send). A route that takes no GET or no POST has None there.
ROUTES: Mapping[str, tuple[Role | None, Role | None]] = {
    "home": (Role.VIEWER, None),
    "workflows": (Role.VIEWER, None),
    "workflow": (Role.VIEWER, None),
    "start": (Role.VIEWER, Role.OPERATOR),
    "start-check": (None, Role.OPERATOR),
    "instances": (Role.VIEWER, None),
    "instance": (Role.VIEWER, None),
    "payload": (Role.VIEWER, None),
    "within": (Role.VIEWER, None),
    "approvals": (Role.VIEWER, None),
    "schedules": (Role.VIEWER, None),
    "schedule-pause": (None, Role.OPERATOR),
    "schedule-resume": (None, Role.OPERATOR),
    "schedule-run": (None, Role.OPERATOR),
    "audit": (Role.VIEWER, None),
    "audit-csv": (Role.VIEWER, None),
    "audit-json": (Role.VIEWER, None),
    # The view asks for more: a request names who may answer, and without names an operator may.
    "answer": (None, Role.VIEWER),
    "pause": (None, Role.OPERATOR),
    "resume": (None, Role.OPERATOR),
    "terminate": (None, Role.OPERATOR),
    "accept-code": (None, Role.OPERATOR),
    "retry-rollback": (None, Role.OPERATOR),
    "send-event": (None, Role.OPERATOR),
    "restart": (Role.VIEWER, Role.OPERATOR),
    "delete": (None, Role.OPERATOR),
    "live-frame": (Role.VIEWER, None),
}

# Routes that start or steer something: who tries one without its role leaves a row in the audit trail.
STEERING = frozenset(
    {
        "start",
        "pause",
        "resume",
        "terminate",
        "retry-rollback",
        "accept-code",
        "send-event",
        "restart",
        "delete",
        "schedule-pause",
        "schedule-resume",
        "schedule-run",
    }
)


def role_of(user: Any) -> Role:
    """Give the highest role of a user; somebody signed in without a role is NOBODY: the users may be a shop's."""
    if not getattr(user, "is_authenticated", False) or not user.is_active:
        return Role.NOBODY
    if user.is_superuser:
        return Role.ADMIN
    held: Role | None = getattr(user, "_studio_role", None)
    if held is None:
        names = user.groups.filter(name__in=GROUPS).values_list("name", flat=True)
        held = max((GROUPS[name] for name in names), default=Role.NOBODY)
        user._studio_role = held
    return held


def needed(route: str, method: str) -> Role | None:
    """Give the role that a request needs; None where the route does not take the method or is not named here."""
    if route not in ROUTES:
        return None
    read, send = ROUTES[route]
    return send if method == "POST" else read


def may_answer(asked: Asked, user: Any) -> bool:
    """Tell whether somebody may answer a request: who was asked, or an operator where nobody in particular was."""
    if not asked.assignees:
        return role_of(user) >= Role.OPERATOR
    return role_of(user) >= Role.VIEWER and is_put_to(asked, user)
