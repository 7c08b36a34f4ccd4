"""Workflows whose bodies tests interrupt."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path

from engine import WorkflowStep, workflow
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
