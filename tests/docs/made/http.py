"""The tables of the HTTP API: its operations, who may use each, and its problems."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from importlib import import_module

from studio.access.permissions import ROLES
from studio.access.token_rules import GIVABLE
from studio.access.verbs import Verb
from tests.docs.made.openapi import problems
from tests.docs.made.openapi.document import FILE, declared_of, operations_of

YES, NO = "✓", "·"
_GROUPS: Mapping[str, list[str]] = import_module("studio.migrations.0001_start").GROUPS


def operations() -> str:
    """List every operation, by what it is about."""
    document = json.loads(FILE.read_text())
    found = list(operations_of(document))
    lines = ["| | address | |", "| --- | --- | --- |"]
    for tag in document["tags"]:
        lines.append(f"| **{tag['name']}** | | |")
        lines += [
            f"| {method.upper()} | `{path}` | {operation['summary']} |"
            for path, method, operation in found
            if tag["name"] in operation["tags"]
        ]
    return "\n".join(lines)


def rights() -> str:
    """Say what each operation needs, and who has it: people by role, and team tokens by verb."""
    roles, verbs = [*ROLES.values()], GIVABLE
    lines = [
        f"| | address | verb | {' | '.join(roles)} | {' | '.join(f'`{verb}`' for verb in verbs)} |",
        f"| --- | --- | --- |{' --- |' * (len(roles) + len(verbs))}",
    ]
    for path, method, _ in operations_of(json.loads(FILE.read_text())):
        needed = needed_by(path, method)
        cells = [
            *(_GROUPS[f"reprise-{role}"] for role in roles),
            *({Verb.VIEW, verb} for verb in verbs),
        ]
        marks = " | ".join(YES if needed in held else NO for held in cells)
        lines.append(f"| {method.upper()} | `{path}` | `{needed}` | {marks} |")
    return "\n".join(lines)


def needed_by(path: str, method: str) -> Verb:
    """Return the verb that an operation needs."""
    declared = declared_of(path, method)
    return declared.asks or declared.verb


def codes() -> str:
    """List the problems by status."""
    lines = ["| status | `code` | when |", "| --- | --- | --- |"]
    for status, names in problems.codes().items():
        phrase = HTTPStatus(status).phrase
        about = problems.NAMES[status][1] if status in problems.NAMES else _OTHERS[status]
        lines.append(f"| {status} {phrase} | {', '.join(f'`{name}`' for name in names)} | {about} |")
    return "\n".join(lines)


_OTHERS = {
    408: "The request did not arrive in time.",
    431: "The headers are too long.",
    405: "The address does not take this method. The header Allow has those that it takes.",
    414: "The address is too long.",
    500: "An error of the Studio, not of the request. Its log has the reference that the answer names.",
}

SECTIONS = {"http-operations": operations, "http-rights": rights, "http-problems": codes}
