"""Terminate: immediate, and final in the record."""

from __future__ import annotations

import asyncio
import threading

import pytest

from engine import InstanceFinishedError, StepContext, WorkflowStep, workflow
from engine.models import Audit
from tests.records import outcomes, statuses
from tests.shifts import run_to_end, running_shift, wait_for, wait_until


def test_a_sync_body_is_told_and_its_late_result_is_refused() -> None:
    """CF-68"""
    entered, over = threading.Event(), threading.Event()
    told: list[bool] = []
    later: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        def slow(ctx: StepContext) -> str:
            entered.set()
            told.append(ctx.cancelled.wait(60))
            over.set()
            return "late"

        await step.do("slow", slow)
        await step.do("later", lambda: later.append("later"))

    instance = story.start()
    with running_shift():
        assert entered.wait(60)
        assert instance.terminate(by="ada", reason="wrong order").status == "terminated"
        assert over.wait(60)
        run_something_else()
    instance.refresh()
    assert (instance.status, instance.output, instance.owner) == ("terminated", None, None)
    assert (statuses(instance), outcomes(instance, "slow")) == ({"slow": "cancelled"}, ["cancelled"])
    assert (told, later) == ([True], [])
    trail = Audit.objects.get()
    assert (trail.verb, trail.actor, trail.reason) == ("terminate", "ada", "wrong order")


def test_an_async_body_is_cancelled() -> None:
    """CF-68, guarantee 13"""
    entered, cancelled = threading.Event(), threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def slow() -> None:
            entered.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.set()
                raise

        await step.do("slow", slow)

    instance = story.start()
    with running_shift():
        assert entered.wait(60)
        instance.terminate()
        assert cancelled.wait(60)
    assert statuses(instance) == {"slow": "cancelled"}


@pytest.mark.parametrize("status", ["queued", "waiting", "paused"])
def test_what_is_not_running_is_terminated_too(status: str) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.sleep("nap", "1h")

    instance = story.start()
    if status != "queued":
        with running_shift():
            wait_for(instance, "waiting")
    if status == "paused":
        instance.pause()
    assert instance.terminate().status == "terminated"
    assert (instance.wake_at, instance.waiting_for, instance.paused_at) == (None, "", None)
    assert instance.finished_at is not None
    assert set(statuses(instance).values()) <= {"cancelled"}


def test_an_instance_waiting_for_its_pause_can_be_terminated() -> None:
    entered, cancelled = threading.Event(), threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> None:
        def slow(ctx: StepContext) -> None:
            entered.set()
            if ctx.cancelled.wait(60):
                cancelled.set()

        await step.do("slow", slow)

    instance = story.start()
    with running_shift():
        assert entered.wait(60)
        assert instance.pause().status == "waiting_for_pause"
        assert instance.terminate().status == "terminated"
        assert cancelled.wait(60)
    assert instance.refresh().status == "terminated"


def test_a_finished_instance_cannot_be_terminated() -> None:
    """CF-67"""

    @workflow
    async def story(step: WorkflowStep) -> str:
        return "done"

    instance = run_to_end(story.start())
    with pytest.raises(InstanceFinishedError):
        instance.terminate()
    assert (instance.refresh().status, instance.output) == ("complete", "done")


def test_terminating_is_not_seen_by_the_handler() -> None:
    """Guarantee 9: `except` does not stop it, and a `finally` can start nothing"""
    entered = threading.Event()
    seen: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        try:
            await step.do("slow", lambda ctx: (entered.set(), ctx.cancelled.wait(60))[1])
        except Exception as error:  # noqa: BLE001 - what the case is about
            seen.append(repr(error))
        finally:
            await step.do("cleanup", lambda: seen.append("cleanup"))

    instance = story.start()
    with running_shift():
        assert entered.wait(60)
        instance.terminate()
        run_something_else()
    assert (seen, statuses(instance)) == ([], {"slow": "cancelled"})


def run_something_else() -> None:
    """Let the shift run another instance, so that it had time to do what it must not."""

    @workflow
    async def other(step: WorkflowStep) -> None:
        await step.do("a", str)
        await step.sleep("park", 0.01)

    instance = other.start()
    with running_shift(name="other"):
        wait_for(instance)
    wait_until(lambda: instance.refresh().owner is None)
