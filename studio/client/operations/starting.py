"""Workflows, and starting instances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from studio.client import answers
from studio.client.answers import JSON
from studio.client.call import Call, path_of
from studio.client.operations.making import post


def workflows() -> Call[answers.Workflows]:
    """Return the workflows with their schemas and counts by status."""
    return Call("GET", "/workflows")


def workflow(name: str) -> Call[answers.WorkflowWithSchedules]:
    """Return a workflow and its schedules."""
    return Call("GET", path_of("workflows", name))


def start(
    workflow: str,
    params: JSON = None,
    *,
    id: str | None = None,
    tags: Sequence[str] | None = None,
    retention: Mapping[str, Any] | None = None,
    at: datetime | str | None = None,
    reason: str = "",
    idempotency_key: str | None = None,
) -> Call[answers.Instance]:
    """Start an instance. When this returns, it is committed. `at` says when it is to run: an aware datetime within 365
    days, or its text; it is queued until then.
    """
    body: dict[str, Any] = {"params": params, "reason": reason}
    given = {"id": id, "tags": None if tags is None else list(tags), "retention": retention}
    given |= {"at": _text(at)}
    body |= {name: value for name, value in given.items() if value is not None}
    return post(path_of("workflows", workflow, "instances"), body, idempotency_key, part="instance")


def start_batch(
    workflow: str,
    items: Iterable[answers.NewInstance],
    *,
    reason: str = "",
    idempotency_key: str | None = None,
) -> Call[answers.Batch]:
    """Start up to 100 instances. Wrong items are reported and do not stop the others."""
    body = {"items": [{**item, "at": _text(item.get("at"))} for item in items], "reason": reason}
    return post(path_of("workflows", workflow, "instances", "batch"), body, idempotency_key)


def _text(at: datetime | str | None) -> str | None:
    return at.isoformat() if isinstance(at, datetime) else at
