"""The workflow of the simulation: its params are the program that it runs."""

from __future__ import annotations

import asyncio
from typing import Any

from engine import EventTimeoutError, StepError, WorkflowStep, workflow
from engine.declare.registry import Workflow

Op = list[Any]
NEVER = "365 days"  # bodies end when the test says, whatever the time


def declare() -> tuple[Workflow[Any, Any], Workflow[Any, Any]]:
    """Return one that may take its time, and one that may not."""

    @workflow("story")
    async def story(step: WorkflowStep, params: list[Any]) -> list[Any]:
        return [await perform(step, op) for op in params]

    @workflow("hurried", timeout=30)
    async def hurried(step: WorkflowStep, params: list[Any]) -> list[Any]:
        return [await perform(step, op) for op in params]

    return story, hurried


def body(given: Any) -> str:
    raise AssertionError("bodies are what the test says")


async def perform(step: WorkflowStep, op: Op, given: Any = None) -> Any:
    match op:
        case ["do", name, delay]:
            try:
                return await step.do(name, body, given, max_attempts=3, delay=delay, timeout=NEVER)
            except StepError as error:
                return f"failed: {error.type}"
        case ["sleep", seconds]:
            await step.sleep(f"sleep {seconds}", seconds)
            return "slept"
        case ["wait", type, timeout]:
            try:
                return (await step.wait_for_event(f"{type} {timeout}", type, timeout=timeout)).payload
            except EventTimeoutError:
                return "timeout"
        case ["progress", message]:
            await step.progress(message)
            step.log.info(message)
            return step.now().isoformat()
        case ["forget", one]:
            asyncio.ensure_future(perform(step, one))  # noqa: RUF006 - it is never awaited
            return None
        case ["then", one, other]:
            first = await perform(step, one)
            return [first, await perform(step, other, first)]
        case ["both", one, other]:
            return list(await asyncio.gather(perform(step, one), perform(step, other)))
        case ["race", one, other]:
            tasks = [asyncio.create_task(perform(step, each)) for each in (one, other)]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            winner = next(task for task in tasks if task.done())
            for task in tasks:
                task.cancel()
            return winner.result()
    raise AssertionError(op)
