"""A workflow that does a little of everything, so that its history holds every kind of record."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date
from typing import Any, TypedDict

from engine import (
    EventTimeoutError,
    NonRetryableError,
    StepError,
    WorkflowStep,
    define_step,
    workflow,
)
from engine.declare.registry import Workflow
from engine.models import Instance
from tests.shifts import run_to_end


@dataclass
class Trip:
    first: date
    nights: int


class Report(TypedDict):
    turns: list[str]
    booked: Trip
    tried: int
    closed: list[object]
    waited: list[object]
    won: str
    facts: list[object]


class Closed(NonRetryableError):
    """With details that are kept."""

    def __init__(self, place: str) -> None:
        super().__init__(f"{place} is closed")
        self.place = place


@define_step(max_attempts=2, delay="10ms")
def book(trip: Trip, nights: int) -> Trip:
    return Trip(trip.first, trip.nights + nights)


async def after(seconds: float, value: str) -> str:
    await asyncio.sleep(seconds)
    return value


def fail() -> None:
    raise Closed("the museum")


def fail_at_first(ctx: Any) -> int:
    if ctx.attempt == 1:
        raise ConnectionError("no line")
    return int(ctx.attempt)


async def golden_tour(step: WorkflowStep, trip: Trip) -> Report:
    step.log.info("setting out", nights=trip.nights)
    booked = await step.run(book, trip, nights=2)
    tried = await step.do("fail-at-first", fail_at_first, delay="10ms")
    return {
        "turns": await turns(step),
        "booked": booked,
        "tried": tried,
        "closed": await closed(step),
        "waited": await waited(step),
        "won": await race(step),
        "facts": facts(step),
    }


async def turns(step: WorkflowStep) -> list[str]:
    """Tell in which turn they ended: the last one that was called is the first."""
    ended: list[str] = []

    async def one(number: int) -> None:
        ended.append(await step.do("same", after, 0.3 - number * 0.1, f"n{number}"))

    await asyncio.gather(*(one(number) for number in range(3)))
    return ended


async def closed(step: WorkflowStep) -> list[object]:
    try:
        await step.do("museum", fail)
    except StepError as error:
        return [error.step, error.type, error.message, error.attempts, error.details]
    return []


async def waited(step: WorkflowStep) -> list[object]:
    try:
        await step.wait_for_event("nobody-comes", timeout="10ms")
    except EventTimeoutError as error:
        await step.progress("nobody came", 50)
        await step.sleep("a-while", 0.01)
        await step.sleep_until("long-ago", step.started_at)
        return [error.step, error.type, error.timeout]
    return []


async def race(step: WorkflowStep) -> str:
    """Let the slower one go: it is recorded as cancelled."""
    quick, slow = step.do("quick", after, 0.01, "quick"), step.do("slow", after, 30, "slow")
    done, left = await asyncio.wait([quick, slow], return_when=asyncio.FIRST_COMPLETED)  # type: ignore[list-item]
    for one in left:
        one.cancel()
    return str(done.pop().result())


def facts(step: WorkflowStep) -> list[object]:
    return [str(step.now()), str(step.uuid4()), step.random.random(), step.instance_id, str(step.started_at)]


def declare() -> Workflow[Any, Any]:
    return workflow("golden-tour")(golden_tour)


def tour() -> Instance:
    instance = run_to_end(declare().start(Trip(date(2026, 5, 1), 3)))
    assert instance.status == "complete", instance.error
    return instance
