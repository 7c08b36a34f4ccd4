"""Pauses of workflows from code: pause one, release its instances some at a time or all, list what is paused."""

from __future__ import annotations

from collections.abc import Iterable

from engine.steer.pauses import Resumed, WorkflowPause, pause, paused, resume
from engine.values.between_steps import in_thread

__all__ = ["Resumed", "WorkflowPause", "apause", "apaused", "aresume", "pause", "paused", "resume"]


async def apause(workflow: str, *, by: object = None, reason: str = "") -> WorkflowPause:
    """Pause a workflow, from async code: see `pause`."""
    return await in_thread(pause)(workflow, by=by, reason=reason)


async def aresume(workflow: str, *, count: int | None = None, by: object = None, reason: str = "") -> Resumed:
    """Release held instances of a paused workflow, from async code: see `resume`."""
    return await in_thread(resume)(workflow, count=count, by=by, reason=reason)


async def apaused(workflows: Iterable[str] | None = None) -> list[WorkflowPause]:
    """Return the pauses of workflows, from async code: see `paused`."""
    return await in_thread(paused)(workflows)
