"""What an operator asks: workers, health, audit trail, and whom the token belongs to."""

from __future__ import annotations

from datetime import datetime

from studio.client import answers
from studio.client.call import Call, Pages, path_of, query_of
from studio.client.operations.making import pages_of, post


def workers() -> Call[list[answers.Worker]]:
    """Return the clusters and workers that were seen lately."""
    return Call("GET", "/workers", part="workers")


def workers_now() -> Call[answers.Workers]:
    """Return the same with the time of the server."""
    return Call("GET", "/workers")


def drain_worker(name: str, *, reason: str = "", idempotency_key: str | None = None) -> Call[answers.Drained]:
    """Let a worker, or all of a cluster, claim nothing until it is resumed. The token must be for all workflows."""
    return post(path_of("workers", name, "drain"), {"reason": reason}, idempotency_key)


def resume_worker(
    name: str, *, reason: str = "", idempotency_key: str | None = None
) -> Call[answers.Drained]:
    """Let a drained worker or cluster claim again. The token must be for all workflows."""
    return post(path_of("workers", name, "resume"), {"reason": reason}, idempotency_key)


def health(
    *, max_due: float = 60, min_workers: int = 1, max_paused: int | None = None
) -> Call[answers.Health]:
    """Return whether everything works. The token must be for all workflows."""
    return Call("GET", "/health", query_of(max_due=max_due, min_workers=min_workers, max_paused=max_paused))


def audit(
    *,
    person: str | None = None,
    verb: str | None = None,
    outcome: str | None = None,
    workflow: str | None = None,
    id: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Pages[answers.ActionOn]:
    """Iterate over the audit trail, newest first."""
    return pages_of(
        "/audit",
        "actions",
        person=person,
        verb=verb,
        outcome=outcome,
        workflow=workflow,
        id=id,
        since=since,
        until=until,
    )


def me() -> Call[answers.Me]:
    """Return whom the token belongs to, and what it may do."""
    return Call("GET", "/me")
