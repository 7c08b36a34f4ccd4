"""What may stand as a step's body, and where its `ctx` may stand."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from engine import StepContext, StepError, WorkflowStep, workflow
from tests.records import step
from tests.shifts import run_to_end

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")


def plain(a: int, b: int = 10) -> int:
    return a + b


async def coroutine(a: int) -> int:
    await asyncio.sleep(0)
    return a


class Tool:
    def __call__(self, a: int) -> int:
        return a

    def method(self, a: int, ctx: StepContext) -> list[Any]:
        return [a, ctx.attempt]

    @classmethod
    def of_class(cls, ctx: StepContext, a: int) -> list[Any]:
        return [a, ctx.attempt]

    @staticmethod
    def of_none(a: int, *, ctx: StepContext) -> list[Any]:
        return [a, ctx.attempt]


class AsyncCallable:
    async def __call__(self, a: int, ctx: StepContext) -> list[Any]:
        await asyncio.sleep(0)
        return [a, ctx.attempt]


def first(ctx: StepContext, a: int) -> list[Any]:
    return [a, ctx.attempt]


def middle(a: int, ctx: StepContext, b: int = 2) -> list[Any]:
    return [a, ctx.attempt, b]


async def afirst(ctx: StepContext, a: int) -> list[Any]:
    return [a, ctx.attempt]


@transaction.atomic
def decorated(ctx: StepContext, a: int) -> list[Any]:
    return [a, ctx.attempt]


def wrapping(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


def rest(a: int, *more: Any, ctx: StepContext) -> list[Any]:
    return [a, *more, ctx.attempt]


SHAPES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Any]] = {
    "function": (plain, (1,), 11),
    "function with all arguments": (plain, (1, 2), 3),
    "coroutine function": (coroutine, (1,), 1),
    "lambda": (lambda a: a, (1,), 1),
    "lambda that returns a coroutine": (lambda a: coroutine(a), (1,), 1),
    "partial": (functools.partial(plain, b=5), (1,), 6),
    "partial of a coroutine function": (functools.partial(coroutine, 7), (), 7),
    "builtin": (len, ("four",), 4),
    "type": (int, ("7",), 7),
    "method of a builtin": ("a,b".split, (",",), ["a", "b"]),
    "callable object": (Tool(), (1,), 1),
    "async callable object": (AsyncCallable(), (1,), [1, 1]),
    "wrapped coroutine function": (wrapping(coroutine), (1,), 1),
    "bound method with ctx": (Tool().method, (1,), [1, 1]),
    "class method with ctx": (Tool.of_class, (1,), [1, 1]),
    "static method with ctx": (Tool.of_none, (1,), [1, 1]),
    "ctx first": (first, (1,), [1, 1]),
    "ctx first, async": (afirst, (1,), [1, 1]),
    "ctx in the middle": (middle, (1,), [1, 1, 2]),
    "ctx in the middle of given ones": (middle, (1, 5), [1, 1, 5]),
    "ctx behind a decorator": (decorated, (1,), [1, 1]),
    "ctx behind a wrapper, async": (wrapping(afirst), (1,), [1, 1]),
    "ctx of a partial": (functools.partial(middle, 8), (), [8, 1, 2]),
    "ctx of a partial with keywords": (functools.partial(first, a=8), (), [8, 1]),
    "ctx after the rest": (rest, (1, 2, 3), [1, 2, 3, 1]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_body_may_be_anything_that_can_be_called(shape: str) -> None:
    fn, args, expected = SHAPES[shape]

    @workflow
    async def story(step: WorkflowStep) -> Any:
        return await step.do("body", fn, *args, max_attempts=1)

    instance = run_to_end(story.start())
    assert (instance.error, instance.output) == (None, expected)


def test_the_decorator_form_runs_when_it_is_called() -> None:
    """With positional and keyword arguments, twice, and with its options."""

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        @step.do("add", max_attempts=2, delay=0)
        def add(a: int, ctx: StepContext, *, b: int) -> list[int]:
            if ctx.attempt == 1:
                raise ValueError("once")
            return [a + b, ctx.count]

        return [await add(1, b=2), await add(b=4, a=3)]

    instance = run_to_end(story.start())
    assert (instance.error, instance.output) == (None, [[3, 1], [7, 2]])
    assert step(instance, "add").attempts == 2


@pytest.mark.parametrize("fn", [None, 7, "name", coroutine])
def test_what_cannot_be_called_is_an_error_in_the_handler(fn: Any) -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        given = fn(1) if fn is coroutine else fn  # a coroutine in place of its function
        try:
            await (step.do("body")(given)() if given is None else step.do("body", given, 1))
        except (TypeError, ValueError) as error:
            if fn is coroutine:
                given.close()
            return str(error)
        return "ran"

    instance = run_to_end(story.start())
    assert (
        "Pass the function itself, and its arguments after it: await step.do(name, fn, *args)."
        in instance.output
    )


@pytest.mark.parametrize(
    ("fn", "kind"),
    [(lambda: (n for n in "ab"), "generator"), (type, "TypeError")],
)
def test_what_a_body_returns_and_cannot_be_kept_says_so(fn: Callable[..., Any], kind: str) -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            return str(await step.do("body", fn, max_attempts=1))
        except StepError as error:
            return f"{error.type} {error.message}"

    assert kind in run_to_end(story.start()).output


def test_an_awaitable_that_a_sync_body_returns_too_late_is_not_run() -> None:
    ran: list[int] = []
    is_timed_out, is_late = threading.Event(), threading.Event()

    async def late() -> None:
        ran.append(1)

    @workflow
    async def story(step: WorkflowStep) -> str:
        def slow(ctx: StepContext) -> Any:
            ctx.cancelled.wait(60)
            is_timed_out.wait(60)
            is_late.set()
            return late()

        try:
            await step.do("slow", slow, timeout=0.02, max_attempts=1)
        except StepError:
            is_timed_out.set()
        await step.do("after", lambda: is_late.wait(60))
        await step.do("and after that", str)
        return "done"

    assert run_to_end(story.start()).output == "done"
    assert ran == []
