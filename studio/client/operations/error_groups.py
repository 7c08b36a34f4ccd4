"""Groups of errors."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from studio.client import answers
from studio.client.call import Call, Pages, path_of, query_of
from studio.client.operations.making import PAGE, pages_of, post

State = Literal["open", "resolved", "ignored", "all"]
Which = Literal["errored", "retrying", "paused", "went_on"]
Unit = Literal["day", "hour", "minutes"]


def error_groups(
    *, workflow: str | None = None, state: State = "open", query: str | None = None
) -> Pages[answers.ErrorGroup]:
    """Iterate over groups of errors, the latest first. `query` is a part of the error, its place or the workflow."""
    return pages_of("/errors", "groups", workflow=workflow, state=state, query=query)


def error_groups_page(
    *,
    workflow: str | None = None,
    state: State = "open",
    query: str | None = None,
    limit: int = PAGE,
    cursor: str | None = None,
) -> Call[answers.ErrorGroupsPage]:
    """Return one page of groups, with the time of the server and the cursor of the next page."""
    return Call(
        "GET", "/errors", query_of(workflow=workflow, state=state, query=query, limit=limit, cursor=cursor)
    )


def error_group(fingerprint: str, *, full: bool = False) -> Call[answers.ErrorGroupDetails]:
    """Return a group, the same error elsewhere, and its latest failure; `full` adds details and traceback."""
    return Call("GET", _group(fingerprint), query_of(full=full))


def error_group_instances(fingerprint: str, *, which: Which = "errored") -> Pages[answers.Listed]:
    """Iterate over the instances whose latest failure belongs to the group, newest first."""
    return pages_of(_group(fingerprint, "instances"), "instances", which=which)


def error_group_instances_page(
    fingerprint: str, *, which: Which = "errored", limit: int = PAGE, cursor: str | None = None
) -> Call[answers.ErrorGroupInstances]:
    """Return one page of them, with how many are errored, wait for a retry and went on."""
    return Call("GET", _group(fingerprint, "instances"), query_of(which=which, limit=limit, cursor=cursor))


def error_group_trend(fingerprint: str, *, unit: Unit = "day") -> Call[list[answers.Bar]]:
    """Return how often the group failed, the earliest first: 14 days, 24 hours, or an hour by three minutes."""
    return Call("GET", _group(fingerprint, "trend"), query_of(unit=unit), part="trend")


def error_group_shares(fingerprint: str) -> Call[list[answers.Share]]:
    """Return what most of the failing instances have in common, and others have not."""
    return Call("GET", _group(fingerprint, "shares"), part="shares")


def resolve_error_group(
    fingerprint: str, *, reason: str = "", idempotency_key: str | None = None
) -> Call[answers.ErrorGroup]:
    """Call a group resolved. It is open again as soon as it fails again."""
    return post(_group(fingerprint, "resolve"), {"reason": reason}, idempotency_key, part="group")


def ignore_error_group(
    fingerprint: str,
    *,
    reason: str,
    until: datetime | None = None,
    count: int | None = None,
    idempotency_key: str | None = None,
) -> Call[answers.ErrorGroup]:
    """Ignore a group until a time, until it has failed so often, or, without both, until it is reopened."""
    body = {"reason": reason, "until": None if until is None else until.isoformat(), "count": count}
    return post(_group(fingerprint, "ignore"), body, idempotency_key, part="group")


def reopen_error_group(
    fingerprint: str, *, reason: str = "", idempotency_key: str | None = None
) -> Call[answers.ErrorGroup]:
    """Withdraw the decision about a group."""
    return post(_group(fingerprint, "reopen"), {"reason": reason}, idempotency_key, part="group")


def add_error_group_note(
    fingerprint: str, text: str, *, idempotency_key: str | None = None
) -> Call[answers.Action]:
    """Add a note for people to a group, in any state. `@name` mentions a user."""
    return post(_group(fingerprint, "notes"), {"text": text}, idempotency_key, part="note")


def _group(fingerprint: str, *parts: str) -> str:
    return path_of("errors", fingerprint, *parts)
