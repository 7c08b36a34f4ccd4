"""Timeouts of steps and of workflows."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from engine import StepContext, StepError, WorkflowStep, workflow
from tests import shifts
from tests.records import outcomes, statuses, step
from tests.stories import run_to_end, running_shift, wait_for
from tests.travel import age


def test_the_timeout_is_per_attempt() -> None:
    """CF-34, LC-07"""
    cancelled: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def slow(ctx: StepContext) -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.append(ctx.attempt)
                raise

        await step.do("slow", slow, timeout=0.05, max_attempts=2, delay=0)

    instance = shifts.run_to_end(story.start())
    assert outcomes(instance, "slow") == ["timed_out", "timed_out"]
    assert instance.error["message"] == "Execution timed out after 50 ms."
    assert (instance.error["type"], instance.error["step"]) == ("StepTimeoutError", "slow")
    assert cancelled == [1, 2]


def test_a_body_that_ends_after_its_timeout_changes_nothing() -> None:
    """CF-35, LC-07: sync, so that it cannot be cancelled, only told"""
    told: list[bool] = []
    is_retried, is_over = threading.Event(), threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> str:
        def slow(ctx: StepContext) -> str:
            if ctx.attempt == 2:
                is_retried.set()
                return "second"
            told.append(ctx.cancelled.wait(60))
            is_retried.wait(60)
            is_over.set()
            return "first"

        return await step.do("slow", slow, timeout=0.05, delay=0)

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_for(instance)
        assert is_over.wait(60)
    assert (instance.refresh().output, told) == ("second", [True])
    assert outcomes(instance, "slow") == ["timed_out", "complete"]


def test_the_time_that_a_body_waits_for_a_thread_is_not_its_own() -> None:
    """Guarantee 7: bodies only"""
    ran: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        def body(number: int) -> None:
            threading.Event().wait(0.15)
            ran.append(number)

        calls = [step.do(f"n{number}", body, number, timeout=0.3, max_attempts=1) for number in range(50)]
        await asyncio.gather(*calls)

    instance = shifts.run_to_end(story.start())
    assert instance.error is None
    assert sorted(ran) == list(range(50))


def test_a_body_still_waiting_for_a_thread_is_not_run_once_its_instance_is_terminated() -> None:
    """Guarantee 13"""
    ran: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        def body(ctx: StepContext, number: int) -> None:
            ran.append(number)
            ctx.cancelled.wait(60)

        await asyncio.gather(*(step.do(f"n{n}", lambda ctx, n=n: body(ctx, n)) for n in range(20)))

    @workflow
    async def later(step: WorkflowStep) -> None:
        await step.do("in line behind them", str)

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: len(ran) == 16)
        instance.terminate()
        shifts.wait_for(later.start())
    assert len(ran) == 16


def test_a_timeout_can_be_caught_and_is_the_same_error_on_a_replay() -> None:
    caught: list[tuple[Any, ...]] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            await step.do("slow", asyncio.sleep, 60, timeout=0.02, max_attempts=1)
        except StepError as error:
            caught.append((error.type, error.message, error.attempts))
        await step.sleep("park", 0.01)
        return "went on"

    instance = run_to_end(story.start())
    assert instance.output == "went on"
    assert len(caught) >= 2
    assert set(caught) == {("StepTimeoutError", "Execution timed out after 20 ms.", 1)}


@pytest.mark.parametrize("park", ["sleep", "event"])
def test_the_workflows_timeout_counts_its_waits(park: str) -> None:
    """Guarantee 7: a deadline from the start, waits included"""

    @workflow(timeout="1 hour")
    async def story(step: WorkflowStep) -> None:
        if park == "sleep":
            await step.sleep("long", "2 hours")
        else:
            await step.wait_for_event("never", timeout=None)

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        assert instance.wake_at == instance.deadline_at
        age(instance, minutes=61)
        wait_for(instance)
    assert (instance.status, instance.error["type"]) == ("errored", "WorkflowTimeoutError")
    assert "1 h 00 m" in instance.error["message"]
    assert list(statuses(instance).values()) == ["cancelled"]


def test_the_workflows_timeout_cancels_the_body_that_runs() -> None:
    """Guarantees 7 and 10"""
    cancelled: list[str] = []

    @workflow(timeout=1)
    async def story(step: WorkflowStep) -> None:
        async def slow() -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.append("slow")
                raise

        try:
            await step.do("slow", slow)
        except StepError:
            await step.do("never", str)

    instance = shifts.run_to_end(story.start())
    assert (instance.status, instance.error["type"]) == ("errored", "WorkflowTimeoutError")
    assert cancelled == ["slow"]
    assert statuses(instance) == {"slow": "cancelled"}
    assert outcomes(instance, "slow") == ["cancelled"]


def test_a_workflow_within_its_timeout_is_left_alone() -> None:
    """KC-40: the default is none, and a sleep of ten minutes times nothing out"""

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.sleep("ten minutes", "10m")
        return "done"

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        assert instance.deadline_at is None
        age(instance, minutes=11)
        wait_for(instance)
    assert instance.output == "done"
    assert step(instance, "ten minutes").status == "complete"


def test_a_step_may_run_longer_than_the_handler_may() -> None:
    """Guarantee 7: handler_timeout excludes bodies"""

    @workflow(handler_timeout=0.05)
    async def story(step: WorkflowStep) -> str:
        await step.do("slow", asyncio.sleep, 0.2)
        return "done"

    assert shifts.run_to_end(story.start()).output == "done"
