"""What bodies that call steps may call, and what they are told (guarantee 8)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from engine import (
    ParkingError,
    RollbackContext,
    StepConfigError,
    StepContext,
    StepError,
    WorkflowStep,
    workflow,
)
from engine.models import Instance, Log, Step
from tests import shifts
from tests.records import attempts, statuses, tree
from tests.shifts import until
from tests.stories import run_to_end

pytestmark = pytest.mark.usefixtures("nothing_is_violated")


# What a body is told


def test_idempotency_keys_use_the_whole_path() -> None:
    """Guarantee 21"""
    keys: dict[str, list[str]] = {}

    @workflow
    async def story(step: WorkflowStep) -> None:
        def child(ctx: StepContext, parent: str) -> None:
            keys.setdefault(parent, []).append(ctx.idempotency_key)
            if ctx.attempt == 1:
                raise ValueError("again")

        async def parent(ctx: StepContext, name: str) -> None:
            await step.do("child", child, name, delay=0)

        await step.do("p", parent, "p")
        await step.do("q", parent, "q")
        await step.do("child", child, "top", delay=0)

    assert run_to_end(story.start()).status == "complete"
    assert [len(set(found)) for found in keys.values()] == [1, 1, 1]
    assert len({found[0] for found in keys.values()}) == 3


def test_random_values_of_a_body_are_the_same_on_every_attempt() -> None:
    """The handler's are unchanged."""
    seen: dict[str, list[list[str]]] = {"sync": [], "async": []}

    @workflow
    async def story(step: WorkflowStep, with_bodies: bool) -> list[str]:
        def sync(ctx: StepContext) -> None:
            seen[ctx.name].append([str(step.uuid4()), str(step.uuid4()), str(step.random.random())])
            if ctx.attempt == 1:
                raise ValueError("again")

        async def later(ctx: StepContext) -> None:
            sync(ctx)

        before = [str(step.uuid4()), str(step.random.random())]
        if with_bodies:
            await step.do("sync", sync, delay=0)
            await step.do("async", later, delay=0)
        return [*before, str(step.uuid4()), str(step.random.random())]

    one = run_to_end(story.start(params=True, id="x"))
    assert [found[0] == found[1] for found in seen.values()] == [True, True]
    assert len({*seen["sync"][0], *seen["async"][0], *one.output}) == 10
    Instance.objects.all().delete()
    assert run_to_end(story.start(params=False, id="x")).output == one.output


@pytest.mark.parametrize("is_async", [True, False])
def test_the_log_of_step_in_a_body_writes_lines_of_that_body(is_async: bool) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        def sync() -> None:
            step.log.info("inside", number=1)

        async def later() -> None:
            sync()
            await step.do("child", sync)

        step.log.info("before")
        await step.do("body", later if is_async else sync)
        await step.sleep("park", 0.01)
        step.log.info("after")

    instance = run_to_end(story.start())
    rows = (
        Log.objects.filter(instance=instance).order_by("key").values_list("message", "step_seq", "position")
    )
    inside = [("inside", 1, None), ("inside", 2, None)] if is_async else [("inside", 1, None)]
    assert list(rows) == [("before", None, 1), *inside, ("after", None, 2)]


# Cancelling


def test_wait_for_cancels_the_child_and_the_body_goes_on() -> None:
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        async def slow() -> None:
            ran.append("slow")
            await asyncio.sleep(60)

        async def parent(ctx: StepContext) -> list[Any]:
            found: list[Any] = []
            for _ in range(2):
                try:
                    await asyncio.wait_for(step.do("slow", slow), 0.1)
                except TimeoutError:
                    found.append("too slow")
            found.append(await step.do("quick", lambda: "quick"))
            if ctx.attempt == 1:
                raise ValueError("again")
            return found

        return await step.do("parent", parent, delay=0)

    instance = shifts.run_to_end(story.start())
    assert instance.output == ["too slow", "too slow", "quick"]
    # A cancelled one has no outcome for the next attempt.
    assert ran == ["slow"] * 4
    assert [path[1:] for path in tree(instance) if len(path) == 3] == [
        ("slow", "cancelled"),
        ("slow #2", "cancelled"),
        ("quick", "complete"),
        ("slow #3", "cancelled"),
        ("slow #4", "cancelled"),
    ]


def test_children_are_futures_and_make_tasks() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        async def parent() -> list[Any]:
            task = asyncio.create_task(step.do("task", lambda: 1))
            done, _ = await asyncio.wait({step.do("waited", lambda: 2)})
            async with asyncio.timeout(30):
                third = await asyncio.shield(step.do("shielded", lambda: 3))
            cancelled = asyncio.create_task(step.do("cancelled", asyncio.sleep, 60))
            cancelled.cancel()
            return [await task, *(one.result() for one in done), third]

        return await step.do("parent", parent)

    instance = run_to_end(story.start())
    assert instance.output == [1, 2, 3]
    assert statuses(instance)["cancelled"] == "cancelled"


def test_a_call_after_the_end_of_the_body_does_nothing() -> None:
    ran: list[str] = []
    orphans: list[asyncio.Task[Any]] = []
    gate = threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def orphan() -> None:
            await until(gate)
            await step.do("late", lambda: ran.append("late"))

        async def parent() -> None:
            orphans.append(asyncio.create_task(orphan()))

        await step.do("parent", parent)
        await step.wait_for_event("go")

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_for(instance, "waiting")
        gate.set()
        shifts.wait_until(orphans[0].done, what="the orphan's end")
        instance.send_event("go")
        shifts.wait_for(instance)
    assert orphans[0].cancelled()
    assert (ran, statuses(instance)) == ([], {"parent": "complete", "go": "complete"})


def test_a_timed_out_body_that_goes_on_starts_nothing() -> None:
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def stubborn() -> None:
            for number in range(100):
                try:
                    await step.do("child", asyncio.sleep, 60)
                except asyncio.CancelledError:
                    ran.append(f"cancelled {number}")

        await step.do("stubborn", stubborn, timeout=0.2, max_attempts=1)

    instance = run_to_end(story.start())
    assert instance.error["type"] == "StepTimeoutError"
    assert statuses(instance) == {"stubborn": "errored", "child": "cancelled"}


# Refusals


REFUSED: dict[str, Callable[[WorkflowStep], Awaitable[Any]]] = {
    "sleep": lambda step: step.sleep("inner", 1),
    "wait_for_event": lambda step: step.wait_for_event("inner"),
    "listen": lambda step: step.listen("inner"),
    "request": lambda step: step.request("inner", bool, message="May it?"),
    "progress": lambda step: step.progress("inner"),
    "map": lambda step: step.map("inner", [1], lambda item, index: item),
    "for_each": lambda step: step.for_each("inner", [1], lambda item, index: item),
    "batch": lambda step: step.batch("inner", [1], lambda batch, start: None),
    "fail": lambda step: step.fail("inner"),
    "abort": lambda step: step.abort("inner"),
    "complete": lambda step: step.complete("inner"),
}


@pytest.mark.parametrize("is_async", [True, False])
def test_what_parks_or_ends_is_refused_in_a_body(is_async: bool) -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        async def later(operation: str) -> None:
            await REFUSED[operation](step)

        def sync(operation: str) -> None:
            asyncio.run(later(operation))

        told: list[Any] = []
        for operation in REFUSED:
            try:
                await step.do(f"calls {operation}", later if is_async else sync, operation)
            except StepError as error:
                told.append([error.type, error.attempts, error.details["operation"], error.details["body"]])
        return told

    instance = run_to_end(story.start())
    assert instance.output == [["ParkingError", 1, one, f"calls {one}"] for one in REFUSED]
    assert set(statuses(instance)) == {f"calls {one}" for one in REFUSED}


def test_do_in_a_plain_function_is_refused() -> None:
    ran: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> dict[str, Any]:
        def sync() -> Any:
            return step.do("inner", lambda: ran.append(1))

        async def in_thread() -> None:
            await asyncio.to_thread(sync)

        def own_loop() -> None:
            async def main() -> None:
                await sync()

            asyncio.run(main())

        told: dict[str, Any] = {}
        for body in (sync, lambda: sync(), in_thread, own_loop):
            try:
                await step.do(body.__name__, body)
            except StepError as error:
                told[error.step] = [error.type, error.details, error.message.partition(", ")[2]]
        return told

    instance = run_to_end(story.start())
    plain = (
        "which is a plain function. Only an async body can run steps: make it `async def`, and await them."
    )
    thread = "but not by its own coroutine. Call it there, not from a thread or another event loop."
    assert instance.output == {
        name: ["ParkingError", {"operation": "do", "step": "inner", "body": name}, rule]
        for name, rule in (("sync", plain), ("<lambda>", plain), ("in_thread", thread), ("own_loop", plain))
    }
    assert (ran, len(statuses(instance))) == ([], 4)


def test_a_delay_function_and_a_rollback_run_no_steps() -> None:
    told: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def ask(ctx: StepContext, error: Exception) -> float:
            return await step.do("inner", float)

        async def fail() -> None:
            raise ValueError("no")

        async def undo(ctx: RollbackContext) -> None:
            try:
                await step.do("inner", str)
            except ParkingError as error:
                told.append(str(error))

        await step.do("undone", str, rollback=undo)
        await step.do("delayed", fail, delay=ask)

    instance = run_to_end(story.start())
    assert instance.error["type"] == "DelayFunctionError"
    assert (instance.rollback, [one.partition(", ")[2] for one in told]) == (
        "complete",
        ["where it is rolled back. No step can run there: do the work in the rollback's function itself."],
    )
    assert statuses(instance) == {"undone": "complete", "delayed": "errored"}


def test_a_step_with_steps_inside_is_rolled_back_as_one() -> None:
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def book() -> str:
            ran.append("book")
            return await step.do("child", lambda: "booked")

        def undo(ctx: RollbackContext) -> None:
            ran.append(f"undo {ctx.output}")

        await step.do("book", book, rollback=undo)
        await step.sleep("park", 0.01)
        await step.fail("no")

    instance = run_to_end(story.start())
    assert (instance.rollback, ran) == ("complete", ["book", "undo booked"])


def test_options_that_make_no_sense_inside_are_refused() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        async def parent() -> list[str]:
            told: list[str] = []
            for options in ({"rollback": print}, {"atomic": True}, {"limit": 1}):
                try:
                    step.do("inner", str, **options)
                except StepConfigError as error:
                    told.append(error.option)
            return told

        return await step.do("outer", parent)

    instance = run_to_end(story.start())
    assert instance.output == ["rollback", "atomic", "limit"]
    assert list(statuses(instance)) == ["outer"]


def test_steps_of_bodies_count_towards_max_steps() -> None:
    """The same on a replay, which does not enter the body."""
    reached: list[str] = []

    @workflow(max_steps=5)
    async def story(step: WorkflowStep) -> None:
        async def parent() -> None:
            for _ in range(3):
                await step.do("child", str)

        await step.do("parent", parent)
        await step.sleep("park", 0.01)
        await step.do("fifth", str)
        reached.append("fifth")
        await step.do("sixth", str)

    instance = run_to_end(story.start())
    assert instance.error["type"] == "LimitError"
    assert instance.error["details"]["value"] == 6
    assert reached
    assert "sixth" not in statuses(instance)


def test_a_body_that_calls_too_many_steps_fails_at_once() -> None:
    @workflow(max_steps=5)
    async def story(step: WorkflowStep) -> list[Any]:
        async def parent() -> None:
            while True:
                await step.do("child", str)

        try:
            await step.do("parent", parent, delay=0)
        except StepError as error:
            return [error.type, error.details["value"]]
        return []

    instance = run_to_end(story.start())
    assert instance.output == ["LimitError", 6]
    assert len(statuses(instance)) == 5
    assert len(attempts(instance, "parent")) == 1


def test_steps_are_not_nested_without_end() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        async def deeper() -> None:
            await step.do("deeper", deeper)

        await deeper()

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["type"]) == ("errored", "StepError")
    innermost = Step.objects.filter(instance=instance).order_by("seq").last()
    assert (innermost.seq, innermost.error["message"]) == (
        20,
        "The depth of nested steps is 21; the limit is 20.",
    )
