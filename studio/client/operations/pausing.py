"""Pauses of workflows."""

from __future__ import annotations

from typing import Any

from studio.client import answers
from studio.client.call import Call, path_of
from studio.client.operations.making import post


def paused_workflows() -> Call[list[answers.PausedWorkflow]]:
    """Return the workflows that are paused, by their names."""
    return Call("GET", "/paused-workflows", part="paused_workflows")


def pause_workflow(
    workflow: str, *, reason: str = "", idempotency_key: str | None = None
) -> Call[answers.PausedWorkflow]:
    """Let none of its instances go on until it is resumed. Returns the first pause if it is already paused."""
    path = path_of("workflows", workflow, "pause")
    return post(path, {"reason": reason}, idempotency_key, part="paused_workflow")


def resume_workflow(
    workflow: str, *, count: int | None = None, reason: str = "", idempotency_key: str | None = None
) -> Call[answers.ResumedWorkflow]:
    """End the pause or, with `count`, release so many of the held instances, the oldest first."""
    body: dict[str, Any] = {"reason": reason} | ({} if count is None else {"count": count})
    return post(path_of("workflows", workflow, "resume"), body, idempotency_key)
