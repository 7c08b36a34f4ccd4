"""A new generation on the worker that still runs a body of the last one: the end of that body changes nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from engine import NonRetryableError, StepContext, WorkflowStep, workflow
from engine.declare.registry import Workflow
from engine.models import Attempt, Instance, Step
from tests.shifts import running_shift, until, wait_for, wait_until

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")

SETTLES = 0.1  # seconds in which the worker takes in that a body has ended


class Gates:
    """What the first call of a body waits for, and what the second one does."""

    def __init__(self) -> None:
        self.calls = 0
        self.began, self.may_end, self.has_ended = (threading.Event() for _ in range(3))
        self.new_began, self.new_may_end = threading.Event(), threading.Event()

    def is_first(self) -> bool:
        self.calls += 1
        return self.calls == 1

    def sync(self) -> str:
        """Ignore that the attempt is over."""
        if self.is_first():
            self.began.set()
            self.may_end.wait(60)
            self.has_ended.set()
            return "old"
        self.new_began.set()
        self.new_may_end.wait(60)
        return "new"

    async def unwilling(self) -> str:
        """Clean up slowly, and return a value in the end."""
        if self.is_first():
            self.began.set()
            try:
                await asyncio.sleep(60)
            finally:
                await until(self.may_end)
                self.has_ended.set()
                return "old"  # noqa: B012 - what the case is about
        self.new_began.set()
        await until(self.new_may_end)
        return "new"


Body = Callable[[WorkflowStep, Gates], Any]


async def sync(step: WorkflowStep, gates: Gates) -> Any:
    return await step.do("call", gates.sync)


async def slow_cleanup(step: WorkflowStep, gates: Gates) -> Any:
    return await step.do("call", gates.unwilling)


async def awaitable_late(step: WorkflowStep, gates: Gates) -> Any:
    async def later(value: str) -> str:
        return value

    return await step.do("call", lambda: later(gates.sync()))


async def retried(step: WorkflowStep, gates: Gates) -> Any:
    def body(ctx: StepContext) -> str:
        if ctx.attempt == 1:
            raise ConnectionError
        return gates.sync()

    return await step.do("call", body, delay=0)


async def atomic(step: WorkflowStep, gates: Gates) -> Any:
    return await step.do("call", gates.sync, atomic=True)


async def nested(step: WorkflowStep, gates: Gates) -> Any:
    async def outer() -> str:
        return await step.do("inner", gates.sync)

    return await step.do("call", outer)


async def nested_slow_cleanup(step: WorkflowStep, gates: Gates) -> Any:
    async def outer() -> str:
        return await step.do("inner", gates.unwilling)

    return await step.do("call", outer)


async def mapped(step: WorkflowStep, gates: Gates) -> Any:
    await step.do("call", str)
    return (await step.map("items", [1], lambda item, index: gates.sync()))[0]


async def rollback(step: WorkflowStep, gates: Gates) -> Any:
    await step.do("call", str, rollback=lambda ctx: gates.sync())
    await step.do("fails", lambda: 1 / 0, max_attempts=1)


async def rollback_slow_cleanup(step: WorkflowStep, gates: Gates) -> Any:
    async def undo(ctx: Any) -> str:
        return await gates.unwilling()

    await step.do("call", str, rollback=undo)
    await step.do("fails", lambda: 1 / 0, max_attempts=1)


async def delay_function(step: WorkflowStep, gates: Gates) -> Any:
    def body(ctx: StepContext) -> str:
        if ctx.attempt == 1:
            raise ConnectionError
        return "new"

    def delay(ctx: StepContext, error: Exception) -> float:
        if gates.sync() == "old":
            raise NonRetryableError("the answer to a question of the last generation")
        return 0.0

    return await step.do("call", body, delay=delay)


async def async_delay_function(step: WorkflowStep, gates: Gates) -> Any:
    def body(ctx: StepContext) -> str:
        if ctx.attempt == 1:
            raise ConnectionError
        return "new"

    async def delay(ctx: StepContext, error: Exception) -> float:
        if gates.is_first():
            gates.began.set()
            await until(gates.may_end)
            gates.has_ended.set()
            raise NonRetryableError("the answer to a question of the last generation")
        gates.new_began.set()
        await until(gates.new_may_end)
        return 0.0

    return await step.do("call", body, delay=delay)


STORIES: dict[str, Body] = {
    story.__name__: story
    for story in (
        sync,
        slow_cleanup,
        awaitable_late,
        retried,
        atomic,
        nested,
        nested_slow_cleanup,
        mapped,
        rollback,
        rollback_slow_cleanup,
        delay_function,
        async_delay_function,
    )
}


def terminate_and_restart(instance: Instance) -> None:
    instance.terminate()
    instance.restart()


def pause_and_restart(instance: Instance) -> None:
    instance.pause()
    instance.restart()


STEERING: dict[str, Callable[[Instance], Any]] = {
    "restart": Instance.restart,
    "terminate, restart": terminate_and_restart,
    "restart from the step": lambda instance: instance.restart("call"),
    "pause, restart": pause_and_restart,
}


def declared(story: Body, gates: Gates) -> Workflow[None, Any]:
    async def handler(step: WorkflowStep) -> Any:
        return await story(step, gates)

    return workflow(name="story")(handler)


@pytest.mark.parametrize("steering", STEERING)
@pytest.mark.parametrize("name", STORIES)
def test_the_end_of_an_old_body_changes_nothing_in_the_new_generation(name: str, steering: str) -> None:
    gates = Gates()
    instance = declared(STORIES[name], gates).start()
    with running_shift():
        assert gates.began.wait(60)
        STEERING[steering](instance)
        assert gates.new_began.wait(60), "the new generation waits for the old body"
        gates.may_end.set()
        assert gates.has_ended.wait(60)
        time.sleep(SETTLES)
        gates.new_may_end.set()
        wait_for(instance)
    assert_well(instance, is_undone=name.startswith("rollback"))


def assert_well(instance: Instance, *, is_undone: bool) -> None:
    if is_undone:
        assert (instance.status, instance.rollback) == ("errored", "complete")
    else:
        assert (instance.status, instance.output) == ("complete", "new"), instance.error
    assert instance.generation == 2
    for model in (Step, Attempt):
        rows = model.objects.filter(instance=instance, status__in=("running", "waiting"))
        assert list(rows) == []


def test_a_body_of_the_new_generation_times_out_although_an_old_one_has_ended() -> None:
    """The old body's end must not stop the clock of the new one."""
    gates = Gates()

    async def story(step: WorkflowStep, gates: Gates) -> str:
        try:
            return str(await step.do("call", gates.sync, timeout="400ms", max_attempts=1))
        except Exception as error:  # noqa: BLE001
            return str(getattr(error, "type", error))

    instance = declared(story, gates).start()
    with running_shift():
        assert gates.began.wait(60)
        instance.restart()
        assert gates.new_began.wait(60)
        gates.may_end.set()
        wait_for(instance)
        gates.new_may_end.set()
    assert (instance.status, instance.output) == ("complete", "StepTimeoutError")


def test_a_slot_is_free_again_when_an_old_body_has_ended() -> None:
    """One slot: the next instance could not run if the worker counted the old body."""
    gates, ran = Gates(), threading.Event()
    instance = declared(sync, gates).start()

    @workflow
    async def neighbour(step: WorkflowStep) -> None:
        await step.do("work", ran.set)

    with running_shift(slots=1):
        assert gates.began.wait(60)
        instance.restart()
        assert gates.new_began.wait(60)
        gates.may_end.set()
        gates.new_may_end.set()
        wait_for(instance)
        other = neighbour.start()
        wait_until(ran.is_set)
        wait_for(other)
