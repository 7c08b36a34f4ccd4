"""Actions on an instance."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import quote

from studio.client import answers
from studio.client.answers import JSON
from studio.client.call import Call, Query, query_of
from studio.client.operations.making import address_of, post
from studio.client.unset import UNSET, Unset

LONGEST_IN_ADDRESS = 1_000  # characters of a reason, so that every server and proxy accepts the address


def pause(
    workflow: str,
    id: str,
    *,
    reason: str = "",
    if_match: str | None = None,
    idempotency_key: str | None = None,
) -> Call[answers.Steered]:
    """Pause an instance. Running bodies end first and are recorded."""
    return _steer(address_of(workflow, id, "pause"), {"reason": reason}, idempotency_key, if_match)


def resume(
    workflow: str,
    id: str,
    *,
    reason: str = "",
    if_match: str | None = None,
    idempotency_key: str | None = None,
) -> Call[answers.Steered]:
    """Resume a paused instance."""
    return _steer(address_of(workflow, id, "resume"), {"reason": reason}, idempotency_key, if_match)


def terminate(
    workflow: str,
    id: str,
    *,
    reason: str,
    rollback: bool = False,
    if_match: str | None = None,
    idempotency_key: str | None = None,
) -> Call[answers.Steered]:
    """End an instance now, with `rollback` after its steps are rolled back."""
    body = {"reason": reason, "rollback": rollback}
    return _steer(address_of(workflow, id, "terminate"), body, idempotency_key, if_match)


def restart(
    workflow: str,
    id: str,
    *,
    reason: str,
    from_step: str | None = None,
    count: int = 1,
    kind: str = "do",
    params: JSON | Unset = UNSET,
    keys: Literal["new", "same"] = "new",
    if_match: str | None = None,
    idempotency_key: str | None = None,
) -> Call[answers.Instance]:
    """Begin a new generation, from the start (also with other params) or from a step. Side effects repeat, but not
    those of services that know the idempotency keys, if these stay the same.
    """
    body: dict[str, Any] = {
        "reason": reason,
        "from_step": from_step,
        "count": count,
        "kind": kind,
        "keys": keys,
    }
    if params is not UNSET:
        body["params"] = params
    return _steer(address_of(workflow, id, "restart"), body, idempotency_key, if_match, part="instance")


def retry_step(
    workflow: str,
    id: str,
    *,
    step: str | None = None,
    count: int = 1,
    reason: str = "",
    if_match: str | None = None,
    idempotency_key: str | None = None,
) -> Call[answers.Instance]:
    """Run the step again that ended an instance, or those whose used-up attempts paused it, or of these the one of this
    name and count. It has all its attempts, and the same idempotency key.
    """
    path, body = address_of(workflow, id, "retry-step"), {"reason": reason, "step": step, "count": count}
    return _steer(path, body, idempotency_key, if_match, part="instance")


def fail_step(
    workflow: str,
    id: str,
    step: str,
    *,
    reason: str,
    count: int = 1,
    if_match: str | None = None,
    idempotency_key: str | None = None,
) -> Call[answers.Steered]:
    """Let a step fail whose used-up attempts have paused the instance."""
    body = {"reason": reason, "step": step, "count": count}
    return _steer(address_of(workflow, id, "fail-step"), body, idempotency_key, if_match)


def skip_step(
    workflow: str,
    id: str,
    step: str,
    output: JSON = None,
    *,
    reason: str,
    count: int = 1,
    if_match: str | None = None,
    idempotency_key: str | None = None,
) -> Call[answers.Steered]:
    """Complete a step with this output, without running it again. It is never rolled back."""
    body = {"reason": reason, "step": step, "count": count, "output": output}
    return _steer(address_of(workflow, id, "skip-step"), body, idempotency_key, if_match)


def preview_restart(
    workflow: str, id: str, *, from_step: str | None = None, count: int = 1, kind: str = "do"
) -> Call[answers.RestartPlan]:
    """Return what a restart would keep, run again and drop. Changes nothing."""
    body = {"from_step": from_step, "count": count, "kind": kind}
    return post(address_of(workflow, id, "restart", "preview"), body, None)


def retry_now(
    workflow: str,
    id: str,
    *,
    reason: str = "",
    if_match: str | None = None,
    idempotency_key: str | None = None,
) -> Call[answers.Steered]:
    """End the back-off of an instance: the next attempt starts now."""
    return _steer(address_of(workflow, id, "retry-now"), {"reason": reason}, idempotency_key, if_match)


def wake_now(
    workflow: str,
    id: str,
    *,
    step: str | None = None,
    count: int = 1,
    reason: str = "",
    if_match: str | None = None,
    idempotency_key: str | None = None,
) -> Call[answers.Steered]:
    """End the sleeps of an instance now, or the one of this name and count."""
    body = {"reason": reason, "step": step, "count": count}
    return _steer(address_of(workflow, id, "wake-now"), body, idempotency_key, if_match)


def retry_rollback(
    workflow: str,
    id: str,
    *,
    reason: str = "",
    if_match: str | None = None,
    idempotency_key: str | None = None,
) -> Call[answers.Steered]:
    """Give a failed rollback a new set of attempts."""
    return _steer(address_of(workflow, id, "retry-rollback"), {"reason": reason}, idempotency_key, if_match)


def accept_code(
    workflow: str,
    id: str,
    *,
    reason: str = "",
    if_match: str | None = None,
    idempotency_key: str | None = None,
) -> Call[answers.Steered]:
    """Let an instance go on with the current code of its workflow."""
    return _steer(address_of(workflow, id, "accept-code"), {"reason": reason}, idempotency_key, if_match)


def add_note(
    workflow: str, id: str, text: str, *, idempotency_key: str | None = None
) -> Call[answers.Action]:
    """Add a note for people to an instance, in any status. `@name` mentions a user."""
    return post(address_of(workflow, id, "notes"), {"text": text}, idempotency_key, part="note")


def delete(workflow: str, id: str, *, reason: str, if_match: str | None = None) -> Call[answers.Deleted]:
    """Delete a finished instance. Its audit trail stays."""
    headers = {} if if_match is None else {"If-Match": if_match}
    query, body = _why(reason)
    return Call("DELETE", address_of(workflow, id), query, body, headers, part="deleted")


def _why(reason: str) -> tuple[Query, Any]:
    """Return a reason as a query, because proxies may drop the body of a DELETE, or as a body if it is too long."""
    if reason.isprintable() and len(quote(reason)) <= LONGEST_IN_ADDRESS:
        return query_of(reason=reason), None
    return (), {"reason": reason}


def _steer(path: str, body: Any, key: str | None, if_match: str | None, part: str | None = None) -> Call[Any]:
    return post(path, body, key, {} if if_match is None else {"If-Match": if_match}, part)
