"""A parent with children that complete, that fail, that are spawned, and that are compensated."""

from __future__ import annotations

from typing import TypedDict

from engine import ChildWorkflowError, WorkflowStep, branch, workflow
from engine.declare.registry import Workflow
from engine.models import Instance
from tests.shifts import run_to_end


class Report(TypedDict):
    doubled: int
    failed: list[str]
    spawned: list[str]
    told: list[object]
    side_by_side: list[int]
    broken: list[str]


async def golden_double(step: WorkflowStep, number: int) -> int:
    """Fail for what is negative."""
    if number < 0:
        await step.fail(f"{number} is negative")
    return await step.do("double", lambda: 2 * number)


async def golden_family(step: WorkflowStep) -> Report:
    handle = await step.spawn("spawned", "golden-double", 5)
    result = await step.wait_for_instance("told", handle)
    return {
        "doubled": await step.run_workflow("doubled", "golden-double", 2),
        "failed": await failed(step),
        "spawned": [handle.workflow, handle.id],
        "told": [result.workflow, result.id, result.status, result.output],
        "side_by_side": await step.parallel(
            "side-by-side", *(branch("golden-double", number) for number in (1, 2, 3))
        ),
        "broken": await broken(step),
    }


async def failed(step: WorkflowStep) -> list[str]:
    try:
        await step.run_workflow("failed", "golden-double", -1)
    except ChildWorkflowError as error:
        return [error.workflow, error.id, error.status, str(error)]
    return []


async def broken(step: WorkflowStep) -> list[str]:
    try:
        await step.parallel("broken", branch("golden-double", 4), branch("golden-double", -4))
    except ChildWorkflowError as error:
        return [error.workflow, error.id, error.status, str(error)]
    return []


def declare() -> Workflow[None, Report]:
    workflow("golden-double")(golden_double)
    return workflow("golden-family")(golden_family)


def family() -> Instance:
    instance = run_to_end(declare().start())
    assert instance.status == "complete", instance.error
    return instance
