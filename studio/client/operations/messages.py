"""Events and requests."""

from __future__ import annotations

from studio.client import answers
from studio.client.answers import JSON
from studio.client.call import Call, Pages
from studio.client.operations.making import address_of, pages_of, post


def send_event(
    workflow: str,
    id: str,
    type: str,
    payload: JSON = None,
    *,
    dedup_key: str | None = None,
    reason: str = "",
    idempotency_key: str | None = None,
) -> Call[answers.Sent]:
    """Send an event to an instance. Repeated sends with a `dedup_key` are one event."""
    body = {"type": type, "payload": payload, "reason": reason}
    body |= {} if dedup_key is None else {"dedup_key": dedup_key}
    return post(address_of(workflow, id, "events"), body, idempotency_key)


def requests(
    *, workflow: str | None = None, id: str | None = None, mine: bool = False
) -> Pages[answers.Request]:
    """Iterate over open requests, newest first: of all workflows, of one, or with `id` of one instance.

    `mine` leaves out those that the token may not answer.
    """
    if id is None:
        return pages_of("/requests", "requests", workflow=workflow, mine=mine)
    if workflow is None:
        raise ValueError("An id is unique per workflow only: name the workflow, too.")
    return pages_of(address_of(workflow, id, "requests"), "requests")


def answer(
    workflow: str,
    id: str,
    seq: int,
    answer: JSON,
    *,
    comment: str = "",
    idempotency_key: str | None = None,
) -> Call[answers.Sent]:
    """Answer a request, by the number of its step. The first answer counts."""
    body = {"answer": answer, "comment": comment}
    return post(address_of(workflow, id, "requests", seq, "answer"), body, idempotency_key)
