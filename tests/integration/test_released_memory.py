"""When an instance has left, its worker keeps nothing of it: no results, no functions, no classes, no cycle."""

from __future__ import annotations

import asyncio
import functools
import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel

from engine import StepContext, StepError, WorkflowStep, workflow
from engine.models import Instance
from engine.worker import idle_memory
from engine.worker.bodies.threads import Threads
from tests.shifts import running_shift, wait_for, wait_until

pytestmark = [pytest.mark.usefixtures("engine_db", "own_registry"), pytest.mark.second_tier]


class Load:
    """Stands for what is large."""


async def lambdas(step: WorkflowStep, load: Load) -> None:
    await step.do("async", functools.partial(asyncio.sleep, 0, str(load)))
    await step.do("sync", lambda: str(load))
    await asyncio.gather(*(step.do(f"side {n}", lambda: str(load)) for n in range(20)))


async def options_with_functions(step: WorkflowStep, load: Load) -> None:
    async def undo(ctx: Any) -> str:
        return str(load)

    def fail_once(ctx: StepContext) -> None:
        if ctx.attempt == 1:
            raise ConnectionError(load)

    options: dict[str, Any] = {"delay": lambda ctx, error: 0 * len(str(load))}
    await step.do("one", fail_once, rollback=undo, rollback_options=options, **options)
    await step.fail("and undo")


async def annotated_with_local_classes(step: WorkflowStep, load: Load) -> None:
    class Model(BaseModel):
        text: str = ""

        def loaded(self) -> Load:
            return load

    class Plain(TypedDict):
        text: str

    Plain.loaded = lambda: load  # type: ignore[attr-defined]

    @dataclass
    class Pair:
        texts: list[str]

        def loaded(self) -> Load:
            return load

    def model() -> Model:
        return Model(text="a")

    def pairs() -> list[Pair] | None:
        return [Pair(["a"])]

    def plain() -> Plain:  # each names its type, or that could not be found
        return Plain(text="a")

    for fn in (model, pairs, plain):
        await step.do("typed", fn)  # type: ignore[arg-type]
    await step.map("items", [1, 2], lambda item, index: str(load))


async def nested(step: WorkflowStep, load: Load) -> None:
    async def outer() -> str:
        return await step.do("inner", lambda: str(load))

    await step.do("outer", outer)


async def timed_out_and_cancelled(step: WorkflowStep, load: Load) -> None:
    async def slow() -> str:
        await asyncio.sleep(60)
        return str(load)

    slow_one = asyncio.ensure_future(step.do("cancelled", slow))
    with pytest.raises(StepError):
        await step.do("late", slow, timeout=0.01, max_attempts=1)
    slow_one.cancel()


async def failing(step: WorkflowStep, load: Load) -> None:
    def fail() -> None:
        raise ConnectionError(load)

    with pytest.raises(StepError):
        await step.do("fails", fail, max_attempts=2, delay=0)
    raise ValueError(load)


async def parked(step: WorkflowStep, load: Load) -> None:
    await step.do("work", lambda: str(load))
    await step.wait_for_event("never")


STORIES: dict[Callable[..., Any], str] = {
    lambdas: "complete",
    options_with_functions: "errored",
    annotated_with_local_classes: "complete",
    nested: "complete",
    timed_out_and_cancelled: "complete",
    failing: "errored",
    parked: "waiting",
}


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_nothing_of_an_instance_is_kept(story: Callable[..., Any]) -> None:
    kept: list[weakref.ref[Any]] = []

    @workflow(name="story")
    async def handler(step: WorkflowStep) -> None:
        load = Load()
        kept.extend((weakref.ref(load), weakref.ref(step), weakref.ref(step._cycle)))
        await story(step, load)

    with running_shift():
        instance = handler.start()
        wait_for(instance, STORIES[story])
        wait_until(lambda: Instance.objects.filter(key=instance.key, owner=None).exists())
        wait_until(lambda: all_gone(kept), what=f"the end of {kept}")


@pytest.mark.parametrize("story", [lambdas, parked], ids=lambda story: story.__name__)
def test_steps_are_freed_without_a_collection(story: Callable[..., Any]) -> None:
    """The collector would find them, too, but takes a good part of a busy worker's time for that."""
    loads: list[weakref.ref[Load]] = []

    @workflow(name="story")
    async def handler(step: WorkflowStep) -> None:
        load = Load()
        loads.append(weakref.ref(load))
        await story(step, load)

    gc.disable()
    try:
        with running_shift():
            wait_for(handler.start(), STORIES[story])
            wait_until(lambda: loads[0]() is None, what="the end of what the steps refer to")
    finally:
        gc.enable()


def all_gone(kept: list[weakref.ref[Any]]) -> bool:
    gc.collect()
    return bool(kept) and all(ref() is None for ref in kept)


def test_an_idle_thread_keeps_nothing_of_its_last_job() -> None:
    threads, load = Threads(1), Load()
    kept = weakref.ref(load)
    threads.submit(functools.partial(str, load))
    del load
    wait_until(lambda: kept() is None)
    threads.stop()


def test_memory_does_not_grow_with_the_instances_that_a_worker_has_had() -> None:
    """A hundred instances with results of their own, of which closures take hold."""
    loads: weakref.WeakSet[Load] = weakref.WeakSet()

    @workflow(name="story")
    async def handler(step: WorkflowStep) -> None:
        load = Load()
        loads.add(load)
        for number in range(3):
            await step.do(f"closure {number}", lambda: str(load))
        await step.do("undone", str, rollback=lambda ctx: str(load))

    with running_shift():
        for instance in [handler.start() for _ in range(100)]:
            wait_for(instance)
        gc.collect()
        assert len(loads) <= 2


def test_an_idle_shift_frees_what_a_burst_has_left_and_returns_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred parked instances: nobody calls the garbage collector but the shift itself."""
    loads: weakref.WeakSet[Load] = weakref.WeakSet()
    returned: list[int] = []
    monkeypatch.setattr(idle_memory, "GROWTH_KB", -1)  # whatever this process has in memory
    monkeypatch.setattr(idle_memory, "_find_trim", lambda: returned.append)

    @workflow(name="story")
    async def handler(step: WorkflowStep) -> None:
        load = Load()
        loads.add(load)
        await step.do("work", lambda: str(load))
        await step.wait_for_event("never")

    gc.disable()
    try:
        with running_shift():
            instances = [handler.start() for _ in range(100)]
            for instance in instances:
                wait_for(instance, "waiting")
            wait_until(lambda: bool(returned) and not loads, what="the end of all loads")
            assert set(returned) == {0}
    finally:
        gc.enable()
