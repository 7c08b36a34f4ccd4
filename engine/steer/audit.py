"""The audit trail: who did what to which instance, and why. Written in the transaction of the change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.models import Audit
from engine.values.argument import Argument
from engine.values.errors import InvalidNameError, InvalidValueError, LimitError

if TYPE_CHECKING:
    from engine.models import Instance

MAX_REASON = 2_000
MAX_ACTOR = 150


@dataclass(frozen=True, slots=True)
class Cause:
    """Who requests a change and why. Created, and so checked, before anything is locked or written."""

    actor: str = ""
    user_key: str = ""
    reason: str = ""

    @classmethod
    def of(cls, by: object = None, reason: str = "") -> Cause:
        """Return the cause for a Django user, the name of a program, or None.

        Raises InvalidNameError, InvalidValueError or LimitError for a name or a reason that cannot be stored.
        """
        actor, user_key = _actor(by)
        with Argument("reason"):
            return cls(actor, user_key, check_reason(reason))

    @property
    def is_somebody(self) -> bool:
        return bool(self.actor)


def record(
    verb: str,
    instance: Instance,
    *,
    by: object = None,
    reason: str = "",
    before: str = "",
    after: str = "",
    outcome: str = "done",
    data: Any = None,
) -> Audit:
    """Write one audit row; `outcome` is `done` or `denied`."""
    (row,) = write(
        verb, [instance], Cause.of(by, reason), before=before, after=after, outcome=outcome, data=data
    )
    return row


def write(
    verb: str,
    instances: Iterable[Instance],
    cause: Cause,
    *,
    before: str = "",
    after: str = "",
    outcome: str = "done",
    data: Any = None,
) -> list[Audit]:
    """Write an audit row for each instance."""
    return Audit.objects.bulk_create(
        Audit(
            verb=verb,
            actor=cause.actor,
            user_key=cause.user_key,
            workflow=instance.workflow,
            instance_id=instance.id,
            instance_key=instance.key,
            before=before,
            after=after,
            outcome=outcome,
            reason=cause.reason,
            data=data,
        )
        for instance in instances
    )


def note(
    verb: str,
    workflow: str,
    cause: Cause,
    *,
    before: str = "",
    after: str = "",
    outcome: str = "done",
    data: Any = None,
) -> Audit:
    """Write an audit row about a workflow rather than an instance: `instance_id` is empty."""
    return Audit.objects.create(
        verb=verb,
        actor=cause.actor,
        user_key=cause.user_key,
        workflow=workflow,
        instance_id="",
        before=before,
        after=after,
        outcome=outcome,
        reason=cause.reason,
        data=data,
    )


def _actor(by: object) -> tuple[str, str]:
    if by is None:
        return "", ""
    if isinstance(by, str):
        return _name(by), ""
    if getattr(by, "is_authenticated", True) is False:
        return "anonymous", ""
    # A program that acts for a person is named, too.
    name = getattr(by, "audit_name", None) or (by.get_username() if hasattr(by, "get_username") else str(by))
    # E-mail addresses may be longer; the key says who it was.
    key = getattr(by, "pk", None)
    return _name(shortened(name)), "" if key is None else str(key)


def shortened(name: str) -> str:
    """Return the name of a user as it is stored."""
    return name if len(name) <= MAX_ACTOR else f"{name[: MAX_ACTOR - 1]}…"


def _name(name: str) -> str:
    if not name.strip() or len(name) > MAX_ACTOR or is_unstorable(name):
        rule = f"It needs 1 to {MAX_ACTOR} characters, not all of them blank, without NUL or lone surrogates."
        raise InvalidNameError("the name of the actor", name, rule)
    return name


def check_reason(reason: str) -> str:
    """Return a reason as it is stored. Raises InvalidValueError or LimitError."""
    if not isinstance(reason, str):
        raise InvalidValueError("$", "not_text", "It must be a string.", what="reason")
    if len(reason) > MAX_REASON:
        raise LimitError("length of the reason", len(reason), MAX_REASON, unit="characters")
    if is_unstorable(reason):
        raise InvalidValueError("$", "unstorable", "It contains NUL or a lone surrogate.", what="reason")
    return reason


def is_unstorable(text: str) -> bool:
    """Return whether PostgreSQL cannot store a text."""
    return any(char == "\0" or "\ud800" <= char <= "\udfff" for char in text)
