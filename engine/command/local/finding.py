"""Find what a subcommand is about, and who acts."""

from __future__ import annotations

import getpass
from typing import TypedDict

from django.apps import apps

from engine.command.address import Address
from engine.command.subcommand import Options
from engine.declare.registry import workflows
from engine.models import Instance
from engine.status import search
from engine.values.errors import InstanceNotFoundError, UnknownWorkflowError


class Origin(TypedDict):
    by: object
    reason: str


def find(address: Address) -> Instance:
    """Return the instance. Raises UnknownWorkflowError, with similar names, or InstanceNotFoundError."""
    found = Instance.objects.filter(workflow=address.workflow, id=address.id).first()
    if found is None:
        check_workflow(address.workflow)
        raise InstanceNotFoundError(address.workflow, address.id)
    return found


def check_workflow(name: str) -> None:
    """Raise UnknownWorkflowError for a name that is neither in the code nor in the database."""
    if name not in workflows:
        known = search.workflow_names()
        if name not in known:
            raise UnknownWorkflowError(name, known)


def origin(options: Options) -> Origin:
    """Return who acts and why. The permissions of an account apply; any other name is a trusted program's."""
    return {"by": actor(options), "reason": options["reason"]}


def actor(options: Options) -> object:
    """Return who acts: an account, or the name of a program."""
    name = options["by"]
    return f"cli:{_system_user()}" if name is None else _account(name) or name


def _account(name: str) -> object:
    if not apps.is_installed("django.contrib.auth"):
        return None
    from django.contrib.auth import get_user_model

    users = get_user_model()
    return users._default_manager.filter(**{users.USERNAME_FIELD: name.replace("\0", "")}).first()


def _system_user() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in many containers
        return "unknown"
    return name.encode(errors="backslashreplace").decode()
