"""The form of a hook: what was typed, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from engine.declare.registry import workflows as registry
from studio.forms.checked import Checked, Problem
from studio.models import Webhook
from studio.webhooks import sources
from studio.webhooks.mapping import MappingError, Written
from studio.webhooks.schemes import SCHEMES
from studio.webhooks.schemes.scheme import SecretRefusedError
from studio.webhooks.schemes.shared import SECRET_HEADER
from studio.webhooks.sources import SourceError

LONGEST_NAME = 64
LONGEST_TEXT = 10_000
LONGEST_EXAMPLE = 100_000
MOST_PER_MINUTE = 100_000
_PER_MINUTE = re.compile("[0-9]{1,9}")
MAPPING = {
    "id": "id_from",
    "type": "type_from",
    "dedup": "dedup_from",
    "tags": "tags_from",
    "payload": "payload_from",
    "only_if": "only_if",
}
LABELS = {
    "name": "Name",
    "scheme": "Sender",
    "secret": "Secret",
    "secret_header": "Header of the secret",
    "delivery_id_from": "Delivery ID",
    "action": "Action",
    "workflow": "Workflow",
    "id_from": "Instance ID",
    "type_from": "Event type",
    "dedup_from": "Dedup key",
    "tags_from": "Tags",
    "payload_from": "Values",
    "only_if": "Conditions",
    "per_minute": "Deliveries per minute",
    "example": "Example payload",
    "example_headers": "Example headers",
}


@dataclass(frozen=True, slots=True)
class Typed:
    """The submitted form. `secret` is never sent back."""

    name: str = ""
    scheme: str = "standard"
    secret: str = ""
    secret_header: str = ""
    delivery_id_from: str = ""
    action: str = "start"
    workflow: str = ""
    id_from: str = ""
    type_from: str = ""
    dedup_from: str = ""
    tags_from: str = ""
    payload_from: str = ""
    only_if: str = ""
    per_minute: str = "600"
    example: str = ""
    example_headers: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Typed:
        names = [field.name for field in fields(cls) if field.name in given]
        return cls(**{name: given[name].replace("\r\n", "\n").strip() for name in names})

    @classmethod
    def of_hook(cls, hook: Webhook) -> Typed:
        names = [field.name for field in fields(cls) if field.name != "secret"]
        return cls(**{name: str(getattr(hook, name)) for name in names})

    @property
    def starts(self) -> bool:
        return self.action == "start"

    @property
    def written(self) -> Written:
        """Return its mapping, without what the action does not use."""
        given = {name: getattr(self, field) for name, field in MAPPING.items()}
        unused = ("type", "dedup") if self.starts else ("tags",)
        return Written(**given | dict.fromkeys(unused, ""))

    @property
    def values(self) -> dict[str, Any]:
        """Return the columns of a hook; call it for a form without problems."""
        written = self.written
        is_shared = self.scheme == "shared"
        return {
            "name": self.name,
            "scheme": self.scheme,
            "secret_header": self.secret_header if is_shared else "",
            "delivery_id_from": self.delivery_id_from if is_shared else "",
            "action": self.action,
            "workflow": self.workflow,
            **{field: getattr(written, name) for name, field in MAPPING.items()},
            "per_minute": int(self.per_minute),
            "example": self.example,
            "example_headers": self.example_headers,
        }


def check(typed: Typed, *, is_new: bool) -> Checked:
    """Return the problems of the form, and the mapping if it can be read."""
    problems = [*_plain_problems(typed), *_scheme_problems(typed)]
    if is_new:
        problems += secret_problems(typed.scheme, typed.secret)
    rules = None
    try:
        rules = typed.written.read()
    except MappingError as error:
        problems.append(Problem(MAPPING[error.field], str(error)))
    else:
        if typed.scheme == "shared" and _secret_header(typed) in rules.headers:
            problems.append(Problem("secret_header", "The secret is in it, so nothing else may read it."))
    if not typed.starts:
        needed = {"id_from": "which instance gets the event", "type_from": "the type of the event"}
        problems += [
            Problem(name, f"Say {what}.") for name, what in needed.items() if not getattr(typed, name)
        ]
    return Checked(rules, tuple(problems))


def secret_problems(scheme: str, secret: str) -> list[Problem]:
    """Return what is wrong with a typed secret; it may be empty if we make secrets of the scheme."""
    known = SCHEMES.get(scheme)
    if known is None:
        return []
    if not secret:
        label = known.label
        return (
            []
            if known.makes_secrets
            else [Problem("secret", f"{label} makes the secret and shows it. Paste it here.")]
        )
    try:
        known.check_secret(secret)
    except SecretRefusedError as error:
        return [Problem("secret", str(error))]
    return []


def _plain_problems(typed: Typed) -> list[Problem]:
    problems = []
    if not typed.name or len(typed.name) > LONGEST_NAME or not typed.name.isprintable():
        problems.append(Problem("name", f"A name has 1 to {LONGEST_NAME} printable characters."))
    if typed.workflow not in registry:
        problems.append(Problem("workflow", "Choose a workflow."))
    if typed.action not in ("start", "event"):
        problems.append(Problem("action", "Choose what a delivery does."))
    if not _PER_MINUTE.fullmatch(typed.per_minute) or not 1 <= int(typed.per_minute) <= MOST_PER_MINUTE:
        problems.append(Problem("per_minute", f"Write a whole number from 1 to {MOST_PER_MINUTE:,}."))
    problems += [
        Problem(name, f"It may have {LONGEST_TEXT:,} characters at most.")
        for name in (*MAPPING.values(), "example_headers", "delivery_id_from")
        if len(getattr(typed, name)) > LONGEST_TEXT
    ]
    if len(typed.example) > LONGEST_EXAMPLE:
        problems.append(Problem("example", f"It may have {LONGEST_EXAMPLE:,} characters at most."))
    problems += [
        Problem(field.name, "It contains a NUL character.")
        for field in fields(typed)
        if "\0" in getattr(typed, field.name)
    ]
    return problems


def _scheme_problems(typed: Typed) -> list[Problem]:
    if typed.scheme not in SCHEMES:
        return [Problem("scheme", "Choose how the sender signs.")]
    problems = []
    if typed.scheme == "shared" and typed.secret_header and not _is_header(typed.secret_header):
        problems.append(Problem("secret_header", "A header has 1 to 64 letters, digits and hyphens."))
    if typed.scheme == "shared" and typed.delivery_id_from:
        try:
            source = sources.source_of(typed.delivery_id_from)
        except SourceError as error:
            problems.append(Problem("delivery_id_from", str(error)))
        else:
            if isinstance(source, sources.Constant):
                problems.append(Problem("delivery_id_from", "A constant does not tell deliveries apart."))
            elif _secret_header(typed) in sources.header_names([source]):
                problems.append(Problem("delivery_id_from", "The secret is in this header."))
    return problems


def _secret_header(typed: Typed) -> str:
    return (typed.secret_header or SECRET_HEADER).lower()


def _is_header(name: str) -> bool:
    return len(name) <= 64 and name.isascii() and name.replace("-", "").isalnum()
