"""Arguments that a function does not take fail at once: before its first attempt, and saying what it takes."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from engine import (
    RollbackContext,
    StepArgumentsError,
    StepConfigError,
    StepContext,
    StepError,
    WorkflowStep,
    define_step,
    workflow,
)
from engine.models import Attempt, Instance
from engine.values.errors import DeclarationError
from tests.records import statuses, steps
from tests.stories import run_to_end, running_shift, wait_for


def charge(order: str, cents: int, currency: str = "EUR") -> str:
    return f"{order}: {cents} {currency}"


async def charge_async(order: str, *, cents: int) -> str:
    return f"{order}: {cents}"


def with_context(order: str, ctx: StepContext) -> str:
    return f"{order}, {ctx.attempt}"


class Till:
    def charge(self, order: str) -> str:
        return order

    def __call__(self, order: str) -> str:
        return order


WRONG: dict[str, tuple[Callable[[WorkflowStep], Awaitable[Any]], str]] = {
    "too few": (
        lambda step: step.do("pay", charge, "A-1"),
        "Step \"pay\" cannot call charge(order, cents, currency='EUR') with 1 argument: missing a required argument: '",
    ),
    "too many": (lambda step: step.do("pay", charge, 1, 2, 3, 4), "with 4 arguments: too many positional"),
    "none": (lambda step: step.do("pay", charge), "with 0 arguments: missing a required argument: 'order'"),
    "async": (lambda step: step.do("pay", charge_async, "A-1"), "missing a required argument: 'cents'"),
    "besides ctx": (lambda step: step.do("pay", with_context), "missing a required argument: 'order'"),
    "of a method": (
        lambda step: step.do("pay", Till().charge),
        "charge(order) with 0 arguments",
    ),
    "of an object": (lambda step: step.do("pay", Till()), "Till(order) with 0 arguments"),
    "of a partial": (
        lambda step: step.do("pay", functools.partial(charge, 1, 2), 3, 4),
        "too many positional",
    ),
    "of a builtin": (lambda step: step.do("pay", len), "len(obj, /) with 0 arguments"),
    "atomic": (lambda step: step.do("pay", charge, atomic=True), "missing a required argument: 'order'"),
    "decorated": (lambda step: step.do("pay")(charge)(cents=1), "missing a required argument: 'order'"),
    "unknown keyword": (
        lambda step: step.do("pay", charge, "A", kwargs={"cents": 1, "coins": 2}),
        "with 3 arguments: got an unexpected keyword argument 'coins'",
    ),
    "twice": (
        lambda step: step.do("pay", charge, "A", 1, kwargs={"order": "B"}),
        "multiple values for argument 'order'",
    ),
    "missing beside keywords": (
        lambda step: step.do("pay", with_context, kwargs={}),
        "missing a required argument: 'order'",
    ),
}


@pytest.mark.parametrize(("call", "said"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_fail_at_the_call_and_nothing_is_recorded(
    call: Callable[[WorkflowStep], Awaitable[Any]], said: str
) -> None:
    caught: list[Exception] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        try:
            await call(step)
        except StepArgumentsError as error:
            caught.append(error)
            raise

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["type"]) == ("errored", "StepArgumentsError")
    assert said in instance.error["message"]
    assert (steps(instance), Attempt.objects.count(), len(caught)) == ([], 0, 1)
    assert isinstance(caught[0], TypeError)


RIGHT: dict[str, Callable[[WorkflowStep], Awaitable[Any]]] = {
    "all": lambda step: step.do("pay", charge, "A", 1, "CHF"),
    "but defaults": lambda step: step.do("pay", charge, "A", 1),
    "by name": lambda step: step.do("pay")(charge)("A", cents=1),
    "partial": lambda step: step.do("pay", functools.partial(charge, currency="CHF"), "A", 1),
    "partial async": lambda step: step.do("pay", functools.partial(charge_async, cents=1), "A"),
    "keywords": lambda step: step.do("pay", charge, "A", kwargs={"cents": 1, "currency": "CHF"}),
    "keywords only": lambda step: step.do("pay", charge_async, kwargs={"order": "A", "cents": 1}),
    "keyword and context": lambda step: step.do("pay", with_context, kwargs={"order": "A"}),
    "context": lambda step: step.do("pay", with_context, "A"),
    "variable": lambda step: step.do("pay", lambda *args, **kwargs: len(args), 1, 2, 3),
    "method": lambda step: step.do("pay", Till().charge, "A"),
    "object": lambda step: step.do("pay", Till(), "A"),
    "class": lambda step: step.do("pay", str, 1),
    "without a signature": lambda step: step.do("pay", max, 1, 2),
}


@pytest.mark.parametrize("call", RIGHT.values(), ids=RIGHT)
def test_what_python_takes_is_taken(call: Callable[[WorkflowStep], Awaitable[Any]]) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await call(step)

    instance = run_to_end(story.start())
    assert (instance.status, statuses(instance)) == ("complete", {"pay": "complete"}), instance.error


def test_nested_calls_are_held_to_it_and_fail_the_body_around_them_at_once() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        async def outer() -> None:
            await step.do("inner", charge)

        await step.do("outer", outer)

    instance = run_to_end(story.start())
    assert (instance.error["type"], statuses(instance)) == ("StepArgumentsError", {"outer": "errored"})
    assert Attempt.objects.count() == 1


def test_a_type_error_of_the_body_itself_is_tried_again_as_any() -> None:
    @workflow
    async def story(step: WorkflowStep) -> int:
        def body(ctx: StepContext) -> int:
            if ctx.attempt == 1:
                raise TypeError("of its own")
            return ctx.attempt

        return await step.do("pay", body, delay=0)

    assert run_to_end(story.start()).output == 2


def test_a_recorded_step_is_not_asked_what_its_function_takes_now() -> None:
    code: dict[str, Callable[..., Any]] = {"charge": charge}

    @workflow
    async def story(step: WorkflowStep) -> str:
        found = await step.do("pay", code["charge"], "A", 1)
        await step.wait_for_event("go")
        return str(found)

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")

    code["charge"] = Till().charge
    instance.send_event("go")
    run_to_end(instance)
    assert (instance.status, instance.output) == ("complete", "A: 1 EUR")


# Unknown options


def run_and_catch(call: Callable[[WorkflowStep], Awaitable[Any]]) -> StepConfigError:
    caught: list[StepConfigError] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        try:
            await call(step)
        except StepConfigError as error:
            caught.append(error)

    run_to_end(story.start())
    return caught[0]


@pytest.mark.parametrize(
    ("call", "way"),
    [
        (lambda step: step.do("pay", charge, "A", 1, currency="CHF"), 'kwargs={"currency": ...}'),
        (
            lambda step: step.map("pay", ["A"], charge, currency="CHF"),
            "functools.partial(fn, currency=...)",
        ),
    ],
)
def test_an_argument_that_is_given_as_an_option_is_told_its_way(
    call: Callable[[WorkflowStep], Awaitable[Any]], way: str
) -> None:
    error = run_and_catch(call)
    assert str(error) == (
        'Step "pay": "currency" is "CHF". It is not an option of a step but an argument of '
        "charge(order, cents, currency='EUR'). "
        f"Give it by {way}."
    )


# Keyword arguments


def test_keyword_arguments_reach_the_function_and_its_rollback() -> None:
    undone: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def undo(ctx: RollbackContext) -> None:
        undone.append((ctx.args, ctx.kwargs))

    @workflow
    async def story(step: WorkflowStep) -> str:
        given = {"currency": "CHF"}
        call = step.do("pay", charge, "A", 1, kwargs=given, rollback=undo)
        given["currency"] = "USD"  # changed after the call
        paid = await call

        async def outer() -> str:
            return await step.do("inner", charge_async, kwargs={"order": "B", "cents": 2})

        return await step.fail(f"{paid}, {await step.do('outer', outer)}")

    instance = run_to_end(story.start())
    assert instance.error["message"] == "A: 1 CHF, B: 2"
    assert undone == [(("A", 1), {"currency": "CHF"})]


def test_a_defined_step_validates_keyword_arguments_of_do() -> None:
    @define_step
    def pay(order: str, *, cents: int) -> str:
        return f"{order}: {cents}"

    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.do("pay-now", pay, "A", kwargs={"cents": "1"})

    instance = run_to_end(story.start())
    assert (instance.output, statuses(instance)) == ("A: 1", {"pay-now": "complete"})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda step: step.do("pay", charge, kwargs=["A", 1]),
            "is ['A', 1]. It must be a dict of keyword arguments of the function, such as {'currency': 'EUR'}.",
        ),
        (lambda step: step.do("pay", charge, kwargs={1: "A"}), "It must be a dict of keyword arguments"),
        (
            lambda step: step.do("pay", kwargs={"cents": 1}),
            "Above a function, step.do takes options only. Give keyword arguments where you call the function.",
        ),
    ],
)
def test_keyword_arguments_of_another_form_are_refused(
    call: Callable[[WorkflowStep], Awaitable[Any]], said: str
) -> None:
    assert said in str(run_and_catch(call))


# Other kinds of functions


@pytest.mark.parametrize("operation", ["map", "for_each", "batch"])
def test_the_function_of_a_map_is_told_what_it_is_called_with(operation: str) -> None:
    def one(item: str) -> str:
        return item

    error = run_and_catch(lambda step: getattr(step, operation)("all", ["A"], one))
    takes = "batch, start_index" if operation == "batch" else "item, index"
    assert str(error) == (
        f'Step "all": "fn" is the function one. step.{operation} calls it as fn({takes}), with ctx where it has a '
        "parameter of that name, and one(item) cannot be called so: too many positional arguments."
    )


def no_context() -> None:
    """Take arguments that a rollback is not given."""


def for_rollback(ctx: RollbackContext, order: str) -> None:
    """Take other arguments that a rollback is not given."""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rollback": no_context}, "It is called as fn(ctx), which no_context() does not accept: too many"),
        ({"rollback": for_rollback}, "does not accept: missing a required argument: 'order'."),
        (
            {"delay": lambda error: 1},
            "It is called as fn(ctx, error), which <lambda>(error) does not accept: too many",
        ),
        (
            {"rollback": print, "rollback_options": {"delay": lambda: 1}},
            "It is called as fn(ctx, error), which <lambda>() does not accept: too many",
        ),
    ],
)
def test_rollbacks_and_delay_functions_are_refused_at_the_call(options: dict[str, Any], said: str) -> None:
    error = run_and_catch(lambda step: step.do("pay", charge, "A", 1, **options))
    assert said in str(error)
    with pytest.raises(DeclarationError) as caught:
        define_step("pay", **options)(charge)
    assert said in str(caught.value)


def test_the_arguments_of_a_reusable_step_are_named_with_what_it_takes() -> None:
    pay = define_step("pay")(charge)
    told: list[str] = []

    def start(*args: Any) -> Instance:
        @workflow(name=f"story-{len(args)}")
        async def story(step: WorkflowStep) -> None:
            await step.run(pay, *args)

        return story.start()

    for args in (("A",), ("A", 1, "CHF", 4)):
        instance = run_to_end(start(*args))
        assert (instance.error["type"], steps(instance)) == ("InvalidParamsError", [])
        told.append(instance.error["message"])
    takes = "The step takes (order, cents, currency='EUR')."
    assert f"args.cents: It is missing. {takes}" in told[0]
    assert f"args: Too many positional arguments. {takes}" in told[1]


def test_a_wrong_call_undoes_what_was_done_before() -> None:
    undone: list[Any] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("pay", charge, "A", 1, rollback=lambda ctx: undone.append(ctx.output))
        try:
            await step.do("pay more", charge)
        except StepError:
            raise AssertionError("it is no step that failed") from None

    instance = run_to_end(story.start())
    assert (instance.rollback, undone) == ("complete", ["A: 1 EUR"])
