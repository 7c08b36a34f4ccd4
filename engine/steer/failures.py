"""What people decide about groups of failures: resolve, ignore, reopen. Each is written to the audit trail.

The state of a group follows from the decision and from what failed since (`engine.status.failures`), so workers write
nothing here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from engine.models import Failure
from engine.steer import audit
from engine.steer.clock import database_time
from engine.values.argument import Argument
from engine.values.errors import FailureNotFoundError, InvalidValueError

RESOLVE = "error-resolve"
IGNORE = "error-ignore"
REOPEN = "error-reopen"
MOST_FAILURES = 1_000_000  # that may be ignored
_END = datetime(9999, 12, 31, tzinfo=UTC)  # of the times that the tables take


def resolve(fingerprint: str, *, by: object = None, reason: str = "") -> None:
    """Call a group resolved. It is open again as soon as it fails again.

    Raises FailureNotFoundError.
    """
    _decide(fingerprint, RESOLVE, "resolved", audit.Cause.of(by, reason))


def ignore(
    fingerprint: str,
    *,
    until: datetime | None = None,
    count: int | None = None,
    by: object = None,
    reason: str,
) -> None:
    """Ignore a group until this moment, until it has failed so many times more, or, without both, until it is reopened.

    Raises FailureNotFoundError, and InvalidValueError without a reason or for a moment that has passed.
    """
    cause = audit.Cause.of(by, reason)
    with Argument("reason"):
        if not cause.reason.strip():
            raise InvalidValueError("$", "missing", "It must not be empty.", what="reason")
    with Argument("until"):
        if until is not None and (not timezone.is_aware(until) or not database_time() < until < _END):
            rule = "It must be a moment in the future, before 9999-12-31, with a time zone."
            raise InvalidValueError("$", "not_in_the_future", rule, what="until")
    with Argument("count"):
        if count is not None and not 1 <= count <= MOST_FAILURES:
            rule = f"It must be from 1 to {MOST_FAILURES:,}."
            raise InvalidValueError("$", "out_of_range", rule, what="count")
    _decide(fingerprint, IGNORE, "ignored", cause, ignored_until=until, ignored_count=count)


def reopen(fingerprint: str, *, by: object = None, reason: str = "") -> None:
    """Withdraw the decision about a group: it is open.

    Raises FailureNotFoundError.
    """
    _decide(fingerprint, REOPEN, "", audit.Cause.of(by, reason))


def _decide(fingerprint: str, verb: str, decision: str, cause: audit.Cause, **limits: Any) -> None:
    with transaction.atomic():
        row = Failure.objects.select_for_update(no_key=True).filter(fingerprint=fingerprint).first()
        if row is None:
            raise FailureNotFoundError(fingerprint)
        before = row.decision
        given = {"ignored_until": None, "ignored_count": None, **limits}
        about = (
            {"decided_by": cause.actor, "reason": cause.reason}
            if decision
            else {"decided_by": "", "reason": ""}
        )
        at = database_time() if decision else None
        Failure.objects.filter(fingerprint=fingerprint).update(
            decision=decision, decided_at=at, **about, **given
        )
        data = {"error": fingerprint, "step": row.step, "type": row.type}
        if decision == "ignored":
            data |= {key: _text(value) for key, value in given.items() if value is not None}
        audit.note(verb, row.workflow, cause, before=before or "open", after=decision or "open", data=data)


def _text(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
