"""What parks for a moment goes on in time, also in a shift that holds something long and has nothing else to do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest

from engine import StepContext, WorkflowStep, workflow
from engine.models import Attempt, Step
from engine.worker import claims
from tests.shifts import running_shift, until, wait_for, wait_until

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")

SECONDS = 0.3


@pytest.fixture(autouse=True)
def _no_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody be saved by a sweep: what is not seen to in time is never seen to."""
    monkeypatch.setattr(claims, "SWEEP_SECONDS", 3600.0)


@contextmanager
def holding() -> Iterator[None]:
    """Run a shift that holds a long body; it knows what was declared before."""
    may_end = threading.Event()

    @workflow
    async def long(step: WorkflowStep) -> None:
        await step.do("long", until, may_end)

    with running_shift():
        instance = long.start()
        wait_until(lambda: Attempt.objects.filter(instance=instance).exists())
        yield
        may_end.set()
        wait_for(instance)


def late(since: datetime | None, went_on: datetime | None) -> float:
    assert since is not None
    assert went_on is not None
    return (went_on - since).total_seconds() - SECONDS


def test_a_sleep_ends_in_time_beside_a_long_body() -> None:
    @workflow
    async def naps(step: WorkflowStep) -> None:
        await step.do("work", asyncio.sleep, 0.1)  # the shift looks for what is due next, and finds nothing
        await step.sleep("nap", SECONDS)

    with holding():
        instances = [wait_for(naps.start()) for _ in range(3)]
    for row in Step.objects.filter(instance__in=instances, kind="sleep"):
        assert late(row.started_at, row.finished_at) >= 0


def test_a_back_off_ends_in_time_beside_a_long_body() -> None:
    @workflow
    async def stumbles(step: WorkflowStep) -> None:
        async def work(ctx: StepContext) -> None:
            await asyncio.sleep(0.1)
            if ctx.attempt == 1:
                raise ConnectionError

        await step.do("work", work, delay=SECONDS)

    with holding():
        instances = [wait_for(stumbles.start()) for _ in range(3)]
    for instance in instances:
        first, second = Attempt.objects.filter(instance=instance).order_by("number")
        assert late(first.finished_at, second.started_at) >= 0
