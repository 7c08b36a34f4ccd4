"""A workflow that takes whatever is sent, and one that asks."""

from __future__ import annotations

from typing import Any

from engine import WorkflowStep, workflow


@workflow
async def anything(step: WorkflowStep, params: Any) -> Any:
    """Keep the params, ask for an answer, and wait for events without end."""
    await step.do("keep", kept, params)
    answer = await step.request("what", dict[str, Any], message="What?")
    for _ in range(1_000):
        await step.wait_for_event("go", timeout="365 days")
    return answer.value


@workflow
async def at_once(step: WorkflowStep, params: Any) -> Any:
    """Return the params."""
    return await step.do("keep", kept, params)


def kept(value: Any) -> Any:
    return value
