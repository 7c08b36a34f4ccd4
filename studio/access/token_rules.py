"""What a token may be: its name, its verbs, its patterns of workflows, its expiry."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import datetime

from studio.access.verbs import Verb

LONGEST_NAME = 64
MOST_PATTERNS = 20
LONGEST_PATTERN = 64
# A token makes no tokens, people or grants, so `administer` is not among them.
GIVABLE = (Verb.VIEW, Verb.OPERATE, Verb.APPROVE)
_PATTERN = re.compile(rf"[A-Za-z0-9_*?-]{{1,{LONGEST_PATTERN}}}")


class InvalidTokenError(ValueError):
    """A token cannot be issued as asked for. Nothing was written.

    `field` says which part is wrong, and the message the rule.
    """

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


def check(
    name: str,
    *,
    verbs: Collection[Verb],
    workflows: Sequence[str],
    expires_at: datetime | None,
    now: datetime,
) -> None:
    """Raise InvalidTokenError for the first part that is wrong."""
    check_name(name)
    check_verbs(verbs)
    check_patterns(workflows)
    check_expiry(expires_at, now)


def check_name(name: str) -> None:
    """Raise InvalidTokenError unless it is short and printable: the audit trail has it in the name of who acted."""
    if not 0 < len(name.strip()) <= LONGEST_NAME or not name.isprintable():
        raise InvalidTokenError("name", f"A name has 1 to {LONGEST_NAME} printable characters.")


def check_verbs(verbs: Collection[Verb]) -> None:
    """Raise InvalidTokenError for a verb that no token may have."""
    wrong = sorted(set(verbs) - set(GIVABLE))
    if wrong:
        raise InvalidTokenError("verbs", f"No token may {wrong[0]}. Choose from {', '.join(GIVABLE)}.")


def check_patterns(workflows: Sequence[str]) -> None:
    """Raise InvalidTokenError unless each is a name, or one with * and ?."""
    if not 0 < len(workflows) <= MOST_PATTERNS:
        raise InvalidTokenError(
            "workflows", f"Name 1 to {MOST_PATTERNS} workflows or patterns, such as order-*."
        )
    wrong = next((one for one in workflows if not _PATTERN.fullmatch(one)), None)
    if wrong is not None:
        rule = f"Use up to {LONGEST_PATTERN} letters, digits, _, -, * and ?."
        said = f'"{wrong[:LONGEST_PATTERN]}" is not the name of a workflow, and not a pattern. {rule}'
        raise InvalidTokenError("workflows", said)


def check_expiry(expires_at: datetime | None, now: datetime) -> None:
    """Raise InvalidTokenError for a time that is over, or that the database cannot store."""
    if expires_at is None:
        return
    if expires_at <= now:
        raise InvalidTokenError("expires_at", "Choose an expiry in the future.")
    if expires_at.year >= 9999:
        raise InvalidTokenError("expires_at", "Choose an expiry before the year 9999.")
