"""Many items in one call, people who are asked, and a body that commits with its record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TypedDict

from engine import NonRetryableError, RequestTimeoutError, StepError, WorkflowStep, workflow
from engine.declare.registry import Workflow
from engine.models import Instance
from engine.steer.requests import answer
from tests.shifts import running_shift, wait_for


@dataclass
class Verdict:
    is_good: bool
    since: date


class Report(TypedDict):
    squares: list[int]
    broken: list[object]
    nothing: list[object]
    verdict: Verdict
    by: list[str]
    expired: float
    sold: int


def square(item: int, index: int) -> int:
    return item * item + index


def break_at_two(item: int, index: int) -> int:
    if item == 2:
        raise NonRetryableError("two is too many")
    return item


def add(batch: list[int], start: int) -> int:
    return sum(batch) + start


async def golden_wide(step: WorkflowStep) -> Report:
    squares = await step.map("square", range(5), square, concurrency=2)
    await step.batch("sum", range(5), add, batch_size=2)
    await step.for_each("each", "ab", lambda item, index: f"{item}{index}")
    broken: list[object] = []
    try:
        await step.map("break", [1, 2, 3, 4], break_at_two, concurrency=1)
    except StepError as error:
        broken = [error.step, error.type, error.message]
    decided = await step.request("decide", Verdict, message="Is it good?", assignees=["ada"])
    return {
        "squares": squares,
        "broken": broken,
        "nothing": await step.map("nothing", [], square),
        "verdict": decided.value,
        "by": [decided.answered_by, str(decided.answered_at), decided.comment],
        "expired": await unanswered(step),
        "sold": await step.do("sell", lambda: 3, atomic=True),
    }


async def unanswered(step: WorkflowStep) -> float:
    try:
        await step.request("too-late", bool, message="Anybody there?", timeout="10ms")
    except RequestTimeoutError as error:
        return error.timeout
    return 0


def declare() -> Workflow[None, Report]:
    return workflow("golden-wide")(golden_wide)


def wide() -> Instance:
    instance = declare().start()
    with running_shift():
        wait_for(instance, "waiting")
        answer(instance, "decide", {"is_good": True, "since": "2026-05-01"}, by="ada", comment="fine")
        wait_for(instance)
    assert instance.status == "complete", instance.error
    return instance
