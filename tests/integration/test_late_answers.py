"""Late answers of the database: the instance has left, and its next cycle is under way."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from engine import WorkflowStep, workflow
from engine.declare.registry import Workflow
from engine.models import Instance
from engine.worker.database.journal import Journal
from tests.shifts import running_shift, wait_for

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")

LATE = 0.02  # seconds
APART = 0.008  # seconds between two starts: each calls the shift to claim what is due


@pytest.fixture(autouse=True)
def _late_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read that an instance has parked a moment after the commit, as over a network that loses a packet."""
    execute = Journal._execute

    async def execute_and_wait(journal: Journal, batch: Any) -> Any:
        answers = await execute(journal, batch)
        if any(writes.leave is not None and writes.leave.status == "waiting" for _, writes in batch):
            await asyncio.sleep(LATE)
        return answers

    monkeypatch.setattr(Journal, "_execute", execute_and_wait)


def run_side_by_side(story: Workflow[None, Any], number: int) -> list[Instance]:
    """Start some, one after the other, while a shift runs."""
    instances = []
    with running_shift():
        for _ in range(number):
            instances.append(story.start())
            time.sleep(APART)
        for instance in instances:
            wait_for(instance)
    return instances


def test_a_sleep_ends_although_the_answer_to_its_parking_is_late() -> None:
    """It parks for less than a claim looks ahead, so the next cycle begins before the answer is read."""

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.sleep("s", 0.15)
        return "woke"

    instances = run_side_by_side(story, 20)
    assert [(one.status, one.output) for one in instances] == [("complete", "woke")] * 20


def test_a_back_off_ends_although_the_answer_to_its_parking_is_late() -> None:
    @workflow
    async def story(step: WorkflowStep) -> int:
        async def flaky(ctx: Any) -> int:
            if ctx.attempt < 3:
                raise ConnectionError
            return int(ctx.attempt)

        return await step.do("flaky", flaky, delay="150ms", backoff="constant")

    instances = run_side_by_side(story, 30)
    assert [(one.status, one.output) for one in instances] == [("complete", 3)] * 30
