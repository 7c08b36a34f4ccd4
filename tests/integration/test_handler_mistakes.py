"""A mistake in a handler raises an error that names the step and says what to write instead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from engine import NonRetryableError, StepError, WorkflowStep, workflow, workflows
from engine.models import Attempt, Instance, Log
from engine.testing import workflow_test

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_registry")]


@pytest.fixture(autouse=True)
def _declared(own_registry: None) -> None:
    @workflow(name="other-story")
    async def other(step: WorkflowStep, number: int) -> None:
        """What the handlers below start."""


class Other:
    """That workflow, which is not there when the tests are collected."""

    def __getattr__(self, name: str) -> Any:
        return getattr(workflows["other-story"], name)


other = Other()


def error_of(handler: Any, *params: Any) -> dict[str, Any]:
    """Run a handler, and return the error with which its instance ends."""
    with workflow_test(workflow(handler.__name__.replace("_", "-"))(handler)) as test:
        instance = test.run(*params)
    assert instance.status == "errored"
    return instance.error


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda one: one + 1, "it was used in a calculation"),
        (lambda one: 1 + one, "it was used in a calculation"),
        (lambda one: -one, "it was used in a calculation"),
        (sum, "it was iterated over"),
        (list, "it was iterated over"),
        (len, "it was iterated over"),
        (lambda one: 3 in one, "it was iterated over"),
        (lambda one: one["a"], "an item of it was taken"),
        (lambda one: one.cents, 'its attribute "cents" was read'),
        (lambda one: 1 if one else 2, "it was used as a condition"),
        (lambda one: not one, "it was used as a condition"),
        (lambda one: one == 3, "it was compared"),
        (lambda one: one != 3, "it was compared"),
        (lambda one: one is not None and one < 3, "it was compared"),
        (lambda one: f"{one}", "it was put into a text"),
        (str, "it was put into a text"),
        (lambda one: one(), "it was called"),
        (range, "it was used in a calculation"),
    ],
)
def test_a_result_that_is_used_without_await_is_named(use: Callable[[Any], Any], said: str) -> None:
    async def story(step: WorkflowStep) -> Any:
        return use(step.do("charge", lambda: 7))

    error = error_of(story)
    assert error["type"] == "NotAwaitedError"
    assert error["message"] == (
        f'Step "charge" was called without `await`, and its result is not available yet: {said}. '
        'Write: await step.do("charge", …).'
    )


async def returns(step: WorkflowStep) -> Any:
    return step.do("charge", lambda: 7)


async def returns_inside(step: WorkflowStep) -> Any:
    return {"charge": step.do("charge", lambda: 7)}


async def passes(step: WorkflowStep) -> Any:
    return await step.do("double", lambda cents: cents * 2, step.do("charge", lambda: 7))


async def starts_with(step: WorkflowStep) -> Any:
    return await step.run_workflow("child", "other-story", step.do("charge", lambda: 7))


async def loops(step: WorkflowStep) -> Any:
    async for _ in step.do("charge", lambda: [7]):  # type: ignore[attr-defined]
        pass


async def maps(step: WorkflowStep) -> Any:
    return await step.map("all", step.do("charge", lambda: [7]), lambda item, index: item)


async def passes_as_function(step: WorkflowStep) -> Any:
    @step.do("charge")
    def charge() -> int:
        return 7

    return await step.do("again", charge())


async def maps_with_it(step: WorkflowStep) -> Any:
    return await step.map("all", [1], step.do("charge", lambda: 7))  # type: ignore[arg-type]


async def undoes_with_it(step: WorkflowStep) -> Any:
    return await step.do("book", lambda: 7, rollback=step.do("charge", lambda: 7))


async def delays_with_it(step: WorkflowStep) -> Any:
    return await step.do("book", lambda: 7, delay=step.do("charge", lambda: 7))


async def enters(step: WorkflowStep) -> Any:
    with step.do("charge", lambda: 7):  # type: ignore[attr-defined]
        pass


async def enters_with_async(step: WorkflowStep) -> Any:
    async with step.do("charge", lambda: 7):  # type: ignore[attr-defined]
        pass


async def waits(step: WorkflowStep) -> Any:
    return step.wait_for_event("charge").payload  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (returns, "it was returned as the workflow's output"),
        (returns_inside, "At $.charge: It was not awaited"),
        (passes, "it was passed to another step"),
        (starts_with, "it was passed to a child"),
        (loops, "it was iterated over"),
        (maps, "it was passed to another step"),
        (enters, "it was entered as a context"),
        (enters_with_async, "it was entered as a context"),
        (passes_as_function, "it was passed to another step"),
        (maps_with_it, "it was passed to another step"),
        (undoes_with_it, "it was passed to another step"),
        (delays_with_it, "it was passed to another step"),
        (waits, 'Write: await step.wait_for_event("charge", …).'),
    ],
)
def test_an_operation_that_is_handed_on_without_await_is_named(handler: Any, said: str) -> None:
    assert said in error_of(handler)["message"]
    assert not Attempt.objects.filter(status="errored").exists()


async def forgets(step: WorkflowStep) -> None:
    step.do("charge", lambda: 7)


async def forgets_what_ends_meanwhile(step: WorkflowStep) -> None:
    step.do("charge", lambda: 7)
    await step.sleep("a while", "1h")


async def forgets_and_completes(step: WorkflowStep) -> None:
    step.do("charge", lambda: 7)
    await step.complete()


async def forgets_many(step: WorkflowStep) -> None:
    step.sleep("a while", "1h")
    await step.do("one", lambda: 1)
    for number in range(4):
        step.wait_for_event(f"event {number}")


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (forgets, 'step.do("charge") was'),
        (forgets_what_ends_meanwhile, 'step.do("charge") was'),
        (forgets_and_completes, 'step.do("charge") was'),
        (
            forgets_many,
            'step.sleep("a while"), step.wait_for_event("event 0"), step.wait_for_event("event 1") and 2 more were',
        ),
    ],
)
def test_calls_that_nobody_awaits_are_named_in_the_log(handler: Any, said: str) -> None:
    [(level, message)] = log_of(handler)
    assert level == "warning"
    assert message.startswith(f"{said} called and never awaited. ")
    assert message.endswith("Write `await` before the call.")


async def awaits_later(step: WorkflowStep) -> None:
    charge = step.do("charge", lambda: 7)
    await step.do("other", lambda: 1)
    await charge


async def awaits_in_tasks(step: WorkflowStep) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(step.do("a", lambda: 1))
    await asyncio.create_task(step.do("b", lambda: 1))
    await asyncio.gather(step.do("c", lambda: 1), step.do("d", lambda: 1))
    await asyncio.wait([asyncio.ensure_future(step.do("e", lambda: 1)), step.sleep("f", "1h")])
    await asyncio.shield(step.do("g", lambda: 1))


async def waits_for_the_first(step: WorkflowStep) -> None:
    calls = [asyncio.ensure_future(step.sleep("short", 1)), asyncio.ensure_future(step.sleep("long", "1h"))]
    await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)


async def handles_the_error_of_one(step: WorkflowStep) -> None:
    def fails() -> None:
        raise NonRetryableError("no")

    with suppress(StepError):
        await step.do("fails", fails)


@pytest.mark.parametrize(
    "handler", [awaits_later, awaits_in_tasks, waits_for_the_first, handles_the_error_of_one]
)
def test_calls_that_are_awaited_in_any_way_are_not(handler: Any) -> None:
    assert log_of(handler) == []


def log_of(handler: Any) -> list[tuple[str, str]]:
    """Run a handler to its end, and return the log of its instance."""
    with workflow_test(workflow(handler.__name__.replace("_", "-"))(handler)) as test:
        instance = test.run()
    assert instance.status == "complete"
    return list(Log.objects.values_list("level", "message"))


def test_a_body_that_forgets_to_await_its_own_step_is_not_tried_again() -> None:
    tried: list[int] = []

    async def story(step: WorkflowStep) -> Any:
        async def outer() -> int:
            tried.append(1)
            return step.do("inner", lambda: 1) + 1  # type: ignore[operator, no-any-return]

        return await step.do("outer", outer)

    error = error_of(story)
    assert (error["type"], error["step"], tried) == ("NotAwaitedError", "outer", [1])
    assert 'Step "inner" was called without `await`' in error["message"]


def sends() -> None:
    """Is called too early below."""


async def fetches() -> int:
    return 1


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda step: step.do("a", sends()), '"fn" is None. It must be a function. Did you call it?'),
        (lambda step: step.do("a", 7), '"fn" is 7. It must be a function. Did you call it?'),
        (lambda step: step.do("a", fetches()), "It is a coroutine. Did you call it?"),
        (lambda step: step.do("a"), '"fn" is None. It is missing: await step.do(name, fn, *args).'),
        (lambda step: step.map("a", [1], fetches()), "It is a coroutine. Did you call it?"),
        (lambda step: step.do(sends), "cannot be a step's name. It must be a string: await step.do(name, fn"),
        (lambda step: step.do(["a"], sends), "['a'] cannot be a step's name. It must be a string: await"),
        (lambda step: step.do(None, sends), "None cannot be a step's name. It must be a string: await"),
        (lambda step: step.sleep(5, "1m"), "5 cannot be a step's name. It must be a string."),
        (lambda step: step.do("a", sends, rollback=sends()), ""),
        (lambda step: step.do("a", sends, rollback=3), "takes a RollbackContext. Did you call it?"),
    ],
)
def test_a_wrong_name_or_function_says_how_to_call_it(call: Callable[[Any], Any], said: str) -> None:
    async def story(step: WorkflowStep) -> None:
        await call(step)

    if said:
        assert said in error_of(story)["message"]


def test_a_value_that_does_not_match_its_type_names_the_type() -> None:
    async def story(step: WorkflowStep) -> int:
        return "seven"  # type: ignore[return-value]

    def seven() -> int:
        return "seven"  # type: ignore[return-value]

    async def asks(step: WorkflowStep) -> None:
        await step.do("count", seven)

    said = "does not match its type int. At $: Input should be a valid integer"
    assert error_of(story)["message"].startswith(f"The workflow's output {said}")
    assert error_of(asks)["message"].startswith(f'The output of step "count" {said}')


def test_operations_are_still_futures_of_asyncio() -> None:
    @workflow
    async def together(step: WorkflowStep) -> list[Any]:
        one, two = step.do("one", lambda: 1), step.do("two", lambda: 2)
        assert one != two
        assert one in [two, one]
        assert len({one, two, one}) == 2
        assert not hasattr(one, "cents")
        done, _ = await asyncio.wait([one, two])
        async with asyncio.TaskGroup() as group:
            third = group.create_task(step.do("three", lambda: 3))
        assert done == {one, two}
        return [
            *await asyncio.gather(one, two),
            third.result(),
            await asyncio.shield(step.do("four", lambda: 4)),
        ]

    with workflow_test(together, always_replay=True) as test:
        assert test.run().output == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("read", "what", "advice"),
    [
        (lambda: other.start(1), "start() was called", "await step.spawn(name, workflow, params)"),
        (lambda: other.get_or_start("a", 1), "get_or_start() was called", "await step.spawn("),
        (lambda: other.start_many([]), "start_many() was called", "await step.spawn("),
        (lambda: other.get("a"), "get() was called", "await step.do(name, fn)"),
        (lambda: Instance(key=1).send_event("paid"), "send_event() was called", "await step.do(name, fn)"),
        (lambda: Instance(key=1).pause(), "pause() was called", "await step.do(name, fn)"),
        (lambda: Instance(key=1).restart(), "restart() was called", "await step.do(name, fn)"),
        (lambda: Instance.objects.count(), "The database was used", "await step.do(name, fn)"),
        (lambda: Instance(key=1).save(), "The database was used", "await step.do(name, fn)"),
    ],
)
def test_what_only_a_body_may_do_is_refused_with_what_to_write(
    read: Callable[[], Any], what: str, advice: str
) -> None:
    async def story(step: WorkflowStep) -> None:
        read()

    error = error_of(story)
    assert error["type"] == "BetweenStepsError"
    assert error["message"].startswith(f"{what} in a workflow's handler, where every replay would repeat it.")
    assert advice in error["message"]
    assert "sync_to_async" not in error["message"]


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: other.astart(1), "start() was called"),
        (lambda: other.aget("a"), "get() was called"),
        (lambda: Instance(key=1).asend_event("paid"), "send_event() was called"),
        (lambda: Instance(key=1).arefresh(), "refresh() was called"),
    ],
)
def test_the_async_twins_say_the_same(call: Callable[[], Awaitable[Any]], what: str) -> None:
    async def story(step: WorkflowStep) -> None:
        await call()

    error = error_of(story)
    assert (error["type"], error["message"].startswith(what)) == ("BetweenStepsError", True)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda step: step.sleep("nap", "1s"), "where the instance cannot be parked. Call it from"),
        (lambda step: step.progress("half", 50), "which cannot report progress. Call it from"),
        (lambda step: step.fail("no"), "which cannot end the instance. Return or raise in the body,"),
        (lambda step: step.complete(1), "which cannot end the instance. Return or raise in the body,"),
    ],
)
def test_what_only_a_handler_may_do_is_refused_in_a_body_with_the_reason(
    call: Callable[[WorkflowStep], Awaitable[Any]], said: str
) -> None:
    async def story(step: WorkflowStep) -> None:
        async def body() -> None:
            await call(step)

        await step.do("work", body)

    error = error_of(story)
    assert error["type"] == "ParkingError"
    assert f'was called inside the body of step "work", {said} ' in error["message"]


def test_bodies_may_do_all_that() -> None:
    async def starts() -> str:
        return (await other.astart(2)).id

    @workflow
    async def story(step: WorkflowStep) -> int:
        await step.do("start", lambda: other.start(1).id)
        await step.do("astart", starts)
        return await step.do("count", lambda: Instance.objects.filter(workflow="other-story").count())

    with workflow_test(story) as test:
        assert test.run().output == 2
