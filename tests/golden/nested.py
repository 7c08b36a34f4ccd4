"""A step whose body runs steps of its own; they reach the body, and only its result the handler."""

from __future__ import annotations

from typing import TypedDict

from engine import StepContext, StepError, WorkflowStep, workflow
from engine.declare.registry import Workflow
from engine.models import Instance
from tests.shifts import run_to_end


class Report(TypedDict):
    packed: list[str]
    drawn: list[object]
    refused: list[object]
    mine: list[object]


def refuse() -> None:
    raise ValueError("no")


async def golden_nested(step: WorkflowStep) -> Report:
    async def pack(ctx: StepContext) -> list[str]:
        first = await step.do("wrap", lambda: "wrapped")
        if ctx.attempt == 1:
            raise ConnectionError("on the way")
        return [first, await step.do("wrap", lambda: "twice"), await step.do("inner", label)]

    async def label() -> str:
        return await step.do("wrap", lambda: "labelled")

    async def draw() -> list[object]:
        return [str(step.uuid4()), step.random.random()]

    async def fail() -> None:
        await step.do("refuse", refuse, max_attempts=1)

    packed = await step.do("pack", pack, delay="10ms")
    drawn = await step.do("draw", draw)
    refused: list[object] = []
    try:
        await step.do("fail", fail)
    except StepError as error:
        refused = [error.step, error.type, error.message, error.attempts]
    mine: list[object] = [str(step.uuid4()), step.random.random()]
    return {"packed": packed, "drawn": drawn, "refused": refused, "mine": mine}


def declare() -> Workflow[None, Report]:
    return workflow("golden-nested")(golden_nested)


def nested() -> Instance:
    instance = run_to_end(declare().start())
    assert instance.status == "complete", instance.error
    return instance
