"""Who a program is: the holder of a token, with what its scope allows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from studio.access.verbs import Verb

EVERYTHING = "*"


@dataclass(frozen=True, slots=True)
class Scope:
    """Verbs, and patterns of the names of workflows for which they hold. `view` goes with every verb."""

    verbs: frozenset[Verb]
    workflows: tuple[str, ...]

    @property
    def is_for_all(self) -> bool:
        return EVERYTHING in self.workflows

    def covers(self, workflow: str | None) -> bool:
        """Tell whether it holds for a workflow; for None, which stands for no workflow in particular, it does."""
        if workflow is None:
            return True
        return any(fnmatchcase(workflow, pattern) for pattern in self.workflows)

    @property
    def regex(self) -> str:
        """The same for the database: what PostgreSQL matches the whole name of a workflow against."""
        return f"^(?:{'|'.join(map(_regex_of, self.workflows))})$"


def _regex_of(pattern: str) -> str:
    signs = {"*": ".*", "?": "."}
    return "".join(signs.get(sign) or re.escape(sign) for sign in pattern)


class Principal:
    """The holder of a token. It stands where functions expect a Django user.

    `studio.access.permissions.allowed` decides what it may do. In the audit trail it is `token:<name>`, after the name
    of its owner if it has one.
    """

    is_authenticated = True

    def __init__(
        self,
        *,
        key: str,
        name: str,
        scope: Scope,
        owner: Any = None,
        owner_verbs: frozenset[Verb] | None = None,
        expires_at: datetime | None = None,
    ) -> None:
        self.key = key
        self.name = name
        self.scope = scope
        self.owner = owner
        self.owner_verbs = owner_verbs  # what the owner may do, if it was read with the token
        self.expires_at = expires_at

    def __str__(self) -> str:
        return self.audit_name

    def __repr__(self) -> str:
        return f"<Principal {self.audit_name}>"

    @property
    def is_person(self) -> bool:
        """Whether it acts for a person. A team token does not: requests to people by name are not put to it."""
        return self.owner is not None

    @property
    def is_active(self) -> bool:
        return self.owner is None or bool(self.owner.is_active)

    @property
    def is_superuser(self) -> bool:
        return bool(getattr(self.owner, "is_superuser", False))

    @property
    def pk(self) -> Any:
        return getattr(self.owner, "pk", None)

    @property
    def groups(self) -> Any:
        return self.owner.groups

    @property
    def audit_name(self) -> str:
        """Who the audit trail says has acted."""
        name = f"token:{self.name}"
        return name if self.owner is None else f"{self.owner.get_username()} ({name})"

    def get_username(self) -> str:
        """Return the name of its owner, to which requests are assigned; of a team token, its own."""
        return str(self.owner.get_username()) if self.owner is not None else self.audit_name
