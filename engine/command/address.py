"""The arguments that most subcommands share: which instance, and who acts."""

from __future__ import annotations

import getpass
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import dataclass
from typing import TypedDict

from django.apps import apps

from engine.command.subcommand import Options
from engine.declare.registry import workflows
from engine.models import Instance
from engine.status import search
from engine.values.errors import InstanceNotFoundError, UnknownWorkflowError

MOST = 1_000


class Origin(TypedDict):
    by: object
    reason: str


@dataclass(frozen=True, slots=True)
class Address:
    """An instance in the form in which lists print it."""

    workflow: str
    id: str

    @classmethod
    def of(cls, text: str) -> Address:
        workflow, _, name = text.partition("/")
        if not (workflow and name):
            raise ArgumentTypeError(f'"{text}" is not an instance. Write WORKFLOW/ID, as the lists do.')
        return cls(workflow, name)


def take_instance(parser: ArgumentParser) -> None:
    parser.add_argument("instance", type=Address.of, metavar="WORKFLOW/ID", help="the instance")


def take_limit(parser: ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--limit", type=_limit, default=50, metavar="N", help=f"{what} at most (50; up to {MOST:,})"
    )


def take_origin(parser: ArgumentParser, *, needs_reason: bool = False) -> None:
    """Add the arguments for who acts and why. A destructive action requires a reason, as in the Studio."""
    take_name(parser)
    if needs_reason:
        parser.add_argument("--reason", required=True, type=said, help="why, for the audit trail; required")
    else:
        parser.add_argument("--reason", default="", help="why, for the audit trail")


def take_name(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--by",
        metavar="NAME",
        help="who acts: an account, or any name (default: cli: and the name of the system user)",
    )


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
    name = options["by"]
    by = f"cli:{_system_user()}" if name is None else _account(name) or name
    return {"by": by, "reason": options["reason"]}


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


def said(text: str) -> str:
    if not text.strip():
        raise ArgumentTypeError("This action requires a reason: add --reason.")
    return text


def natural(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text)):
        raise ArgumentTypeError(f'"{text}" is not a number from 1 on.')
    return int(text)


def _limit(text: str) -> int:
    limit = natural(text)
    if limit > MOST:
        raise ArgumentTypeError(f'"{text}" is more than {MOST:,}.')
    return limit
