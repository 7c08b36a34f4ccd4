"""Workflows whose bodies tests interrupt."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine import EventTimeoutError, StepError, WorkflowStep, workflow
from engine.models import Instance
from tests.process.tasks import note


@dataclass
class Errand:
    """Where to leave notes, and how long the body takes the first time."""

    notes: str
    name: str
    seconds: float = 0.0


@workflow
async def errand(step: WorkflowStep, params: Errand) -> str:
    """Note who works, and take one's time over it once."""

    async def run() -> str:
        is_first = f"{params.name} " not in _read(params.notes)
        note(params.notes, f"{params.name} {os.getpid()}")
        if is_first:
            await asyncio.sleep(params.seconds)
        return params.name

    return await step.do("run", run)


@workflow
async def counting_errand(step: WorkflowStep, params: Errand) -> None:
    """Ask the database first, and keep the connection for as long as the body runs."""

    async def run() -> None:
        await Instance.objects.acount()
        note(params.notes, f"{params.name} {os.getpid()}")
        await asyncio.sleep(params.seconds)

    await step.do("run", run)


@workflow
async def blocking_errand(step: WorkflowStep, params: Errand) -> str:
    """The same in a thread, which nobody can interrupt."""

    def run() -> str:
        note(params.notes, f"{params.name} {os.getpid()}")
        time.sleep(params.seconds)
        return params.name

    return await step.do("run", run)


@workflow
async def rude_errand(step: WorkflowStep, params: Errand) -> None:
    """Hold up the loop of the whole worker."""

    async def run() -> None:
        note(params.notes, f"{params.name} {os.getpid()}")
        time.sleep(params.seconds)

    await step.do("run", run)


@workflow
async def endless_errand(step: WorkflowStep, params: Errand) -> None:
    """Outlive one's timeout in a thread."""

    def run() -> None:
        note(params.notes, f"{params.name} {os.getpid()}")
        time.sleep(params.seconds)

    await step.do("run", run, timeout="1s", max_attempts=1)


def _read(path: str) -> str:
    return Path(path).read_text() if Path(path).exists() else ""


@workflow(schedules=["0 0 29 2 *"])
async def leap_day(step: WorkflowStep) -> str:
    """Start by itself, on a day on which no test runs."""
    return await step.do("mark", lambda: "the day")


@workflow
async def hanging_errand(step: WorkflowStep, params: Errand) -> None:
    """Never return: a thread, a task that swallows its cancellation, a call in the loop's executor."""

    def in_thread() -> None:
        note(params.notes, f"{params.name} {os.getpid()}")
        time.sleep(params.seconds)

    async def in_task() -> None:
        note(params.notes, f"{params.name} {os.getpid()}")
        ends_at = time.monotonic() + params.seconds
        while time.monotonic() < ends_at:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1)

    async def in_executor() -> None:
        note(params.notes, f"{params.name} {os.getpid()}")
        await asyncio.to_thread(time.sleep, params.seconds)

    for number, body in enumerate((in_thread, in_task, in_executor)):
        with suppress(StepError):
            await step.do(f"hang-{number}", body, timeout="200ms", max_attempts=1)


@workflow
async def ticking_errand(step: WorkflowStep, params: Errand) -> int:
    """Tick beside a long body, until an event says stop."""

    async def long() -> None:
        note(params.notes, f"{params.name} {os.getpid()}")
        await asyncio.sleep(params.seconds)

    async def ticks() -> int:
        number = 0
        while True:
            try:
                await step.wait_for_event(f"stop-{number}", "stop", timeout="200ms")
            except EventTimeoutError:
                number += 1
                await step.do("tick", note, params.notes, f"tick-{params.name} {number}")
            else:
                return number

    body = asyncio.ensure_future(step.do("long", long, timeout="6h"))
    number = await ticks()
    body.cancel()
    return number


@workflow
async def napping_errand(step: WorkflowStep, params: Errand) -> None:
    """Work for a moment, then sleep so long."""
    await step.do("work", time.sleep, 0.05)
    await step.sleep("nap", params.seconds)


@workflow
async def relay_errand(step: WorkflowStep, params: Errand) -> None:
    """Pass through steps that each take so long."""

    async def run(number: int) -> None:
        note(params.notes, f"{params.name} {number}")
        await asyncio.sleep(params.seconds)

    for number in range(1, 9):
        await step.do(f"leg-{number}", run, number)
