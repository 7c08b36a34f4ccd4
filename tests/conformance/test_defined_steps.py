"""Steps that are declared once: `@define_step`, `.using()`, `step.run`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from engine import (
    DeclarationError,
    InvalidNameError,
    InvalidParamsError,
    RollbackContext,
    StepConfigError,
    StepContext,
    StepError,
    WorkflowStep,
    define_step,
    workflow,
)
from engine.models import Step
from engine.values.retry import StepOptions
from tests.records import attempts, outcomes, step, steps
from tests.stories import run_to_end

DEFAULTS = StepOptions()


class Line(BaseModel):
    item: str
    quantity: int


class Machine:
    """A class that pydantic knows nothing of."""


@dataclass
class Receipt:
    number: int


def test_a_defined_step_runs_under_its_name_with_its_options() -> None:
    @define_step(max_attempts=2, delay=0)
    def take_payment(ctx: StepContext, cents: int, *, currency: str = "EUR") -> Receipt:
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return Receipt(cents if currency == "EUR" else 0)

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        first = await step.run(take_payment, 7)
        return [first.number, (await step.run(take_payment, 8, currency="USD")).number]

    instance = run_to_end(story.start())
    assert instance.output == [7, 0]
    assert [row[:3] for row in steps(instance)] == [("do", "take-payment", 1), ("do", "take-payment", 2)]
    assert outcomes(instance, "take-payment") == ["errored", "complete"]
    assert step(instance, "take-payment").options["max_attempts"] == 2


def test_async_functions_and_a_context_in_any_place() -> None:
    @define_step("greet")
    async def greet(name: str, ctx: StepContext, *rest: int, mark: str, **more: int) -> list[Any]:
        return [name, ctx.name, list(rest), mark, more]

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        run: Any = step.run
        return [await run(greet, "a", 1, "2", mark="!", x="3"), await run(greet, mark="?", name="b")]

    instance = run_to_end(story.start())
    assert instance.output == [["a", "greet", [1, 2], "!", {"x": 3}], ["b", "greet", [], "?", {}]]


def test_arguments_that_do_not_fit_are_refused_at_the_call() -> None:
    """LC-19"""
    ran: list[object] = []

    @define_step
    def greet(name: str) -> None:
        ran.append(name)

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        try:
            step.run(greet, 5)  # type: ignore[call-overload]
        except InvalidParamsError as error:
            return [error.errors, str(error)]
        return []

    instance = run_to_end(story.start())
    [errors, message] = instance.output
    assert [(error["path"], error["code"]) for error in errors] == [("args.name", "string_type")]
    assert message.startswith('The arguments of step "greet" do not match the declared type: args.name: ')
    assert (ran, steps(instance)) == ([], [])


def test_uncaught_they_end_the_instance_without_a_step() -> None:
    """LC-19"""

    @define_step
    def greet(name: str) -> None: ...

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.run(greet)  # type: ignore[call-overload]

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["type"], steps(instance)) == ("errored", "InvalidParamsError", [])
    assert "args.name: It is missing." in instance.error["message"]


def _broken(value: int) -> int:
    raise RuntimeError("out of order")


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((), {}, [("args.line", "missing"), ("args.machine", "missing")]),
        (({"item": "a"}, Machine()), {}, [("args.line.quantity", "missing")]),
        (
            ({"item": "a", "quantity": "x"}, 1),
            {},
            [("args.line.quantity", "int_parsing"), ("args.machine", "is_instance_of")],
        ),
        (({"item": "a", "quantity": 1}, Machine(), ["x"]), {}, [("args.counts[0]", "int_parsing")]),
        (({"item": "a", "quantity": 1}, Machine()), {"odd": 1}, [("args.odd", "validator_failed")]),
        (({"item": "a", "quantity": 1}, Machine()), {"more": 1}, [("args", "unexpected")]),
        (({"item": "a", "quantity": 1}, Machine(), [], 1, 1), {}, [("args", "unexpected")]),
    ],
)
def test_every_wrong_argument_is_listed_with_its_path(
    args: tuple[Any, ...], kwargs: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    @define_step
    def make(
        ctx: StepContext,
        line: Line,
        machine: Machine,
        counts: list[int] | None = None,
        odd: Annotated[int, AfterValidator(_broken)] = 0,
    ) -> None: ...

    with pytest.raises(InvalidParamsError) as caught:
        make.arguments.validate(args, kwargs, what="arguments")
    assert [(error["path"], error["code"]) for error in caught.value.errors] == expected


def test_the_body_gets_its_arguments_as_their_types() -> None:
    @define_step
    def make(line: Line, anything, counts: tuple[int, ...] = ()):  # type: ignore[no-untyped-def]
        return None

    machine = Machine()
    args, kwargs = make.arguments.validate(
        ({"item": "a", "quantity": "2"}, machine), {"counts": ["1"]}, what="x"
    )
    assert (args, kwargs) == ((Line(item="a", quantity=2), machine, (1,)), {})
    assert make.arguments.validate(args, kwargs, what="x") == (args, kwargs)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_return_value_that_does_not_fit_fails_the_step_at_once(is_async: bool) -> None:
    """LC-20"""
    ran: list[int] = []

    def sync(ctx: StepContext) -> Line:
        ran.append(ctx.attempt)
        return {"item": "a"}  # type: ignore[return-value]

    async def later(ctx: StepContext) -> Line:
        return sync(ctx)

    made = define_step("make")(later if is_async else sync)

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        try:
            await step.run(made)
        except StepError as error:
            return [error.step, error.type, error.message, error.attempts]
        return []

    instance = run_to_end(story.start())
    name, kind, message, count = instance.output
    assert (name, kind, count, ran, outcomes(instance, "make")) == (
        "make",
        "InvalidValueError",
        1,
        [1],
        ["errored"],
    )
    assert message.startswith(
        'The output of step "make" does not match its type Line. At $.quantity: Field required.'
    )


def test_using_overrides_for_one_call_and_leaves_the_step_alone() -> None:
    @define_step(max_attempts=4, timeout="5m", delay="1h")
    def charge() -> str:
        return "charged"

    once = charge.using(name="charge-again", max_attempts=1)

    @workflow(defaults={"jitter": 0.5, "max_attempts": 9})
    async def story(step: WorkflowStep) -> list[str]:
        return [await step.run(charge), await step.run(once), await step.run(charge.using(jitter=0.25))]

    instance = run_to_end(story.start())
    assert instance.output == ["charged"] * 3
    rows = [step(instance, "charge"), step(instance, "charge-again"), step(instance, "charge", 2)]
    told = [(row.options["max_attempts"], row.options["timeout"], row.options["jitter"]) for row in rows]
    assert told == [(4, 300, 0.5), (1, 300, 0.5), (4, 300, 0.25)]
    assert [len(attempts(instance, row.name, row.count)) for row in rows] == [1, 1, 1]


def test_a_finished_defined_step_is_not_run_again_on_a_replay() -> None:
    ran: list[str] = []

    @define_step
    def charge(order: str) -> Receipt:
        ran.append(order)
        return Receipt(len(ran))

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        first = await step.run(charge, "a")
        await step.sleep("park", 0.01)
        return [first.number, (await step.run(charge, "b")).number]

    assert (run_to_end(story.start()).output, ran) == ([1, 2], ["a", "b"])


def test_called_it_is_the_plain_function() -> None:
    @define_step("double", max_attempts=3)
    def double(ctx: StepContext, number: int) -> int:
        """Double it."""
        return number * 2

    plain: Any = double
    assert (plain(None, 4), double.name, double.__name__, double.__doc__) == (
        8,
        "double",
        "double",
        "Double it.",
    )


def test_step_run_takes_defined_steps_only() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.run(len, [1])  # type: ignore[arg-type, call-overload]

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["type"]) == ("errored", "StepConfigError")
    assert "@define_step" in instance.error["message"]


def test_step_do_runs_a_defined_step_with_what_it_declares() -> None:
    @define_step(max_attempts=2)
    def charge(cents: int) -> int:
        return cents

    @charge.rollback
    def give_back(ctx: RollbackContext) -> None: ...

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        by_decorator = step.do("third", delay="3s")(charge)
        return [
            await step.do("first", charge, 1),
            await step.do("second", charge, 2, delay="2s"),
            await by_decorator(3),
        ]

    instance = run_to_end(story.start())

    assert instance.output == [1, 2, 3]
    made = {one.name: one.options for one in Step.objects.all()}
    assert {name: (one["max_attempts"], one["delay"]) for name, one in made.items()} == {
        "first": (2, 1),
        "second": (2, 2),
        "third": (2, 3),
    }
    assert all("rollback" in one for one in made.values())


def test_the_rollback_is_declared_once_with_options_of_its_own() -> None:
    @define_step
    def charge() -> None: ...

    plain = charge.using(max_attempts=2)

    @charge.rollback(max_attempts=7, delay="2s")
    def refund(context: Any) -> None: ...

    options = charge.options_over(DEFAULTS)
    assert options.rollback is refund
    assert options.rollback_options == StepOptions.make(max_attempts=7, delay="2s")
    assert plain.options_over(DEFAULTS).rollback is None
    assert charge.using(rollback=None).options_over(DEFAULTS).rollback is None
    assert charge.using(max_attempts=2).options_over(DEFAULTS).rollback is refund
    with pytest.raises(DeclarationError, match="It already has a rollback"):
        charge.rollback(refund)


def test_a_rollback_without_options_has_the_defaults() -> None:
    @define_step
    def charge() -> None: ...

    assert charge.options_over(DEFAULTS).rollback is None  # asked for before

    @charge.rollback
    def refund(context: Any) -> None: ...

    assert charge.options_over(DEFAULTS).rollback is refund
    assert charge.options_over(DEFAULTS).rollback_options is None


def work(number: int) -> int:
    return number


def _of(function: Callable[..., Any], **options: Any) -> Callable[[], Any]:
    return lambda: define_step(**options)(function)


def unresolved(number: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def unresolved_output() -> Missing: ...  # type: ignore[name-defined]  # noqa: F821
def unusable(line: Annotated[int, AfterValidator]) -> None: ...
def unusable_output() -> Awaitable[Machine]: ...
async def later() -> None: ...
def generator() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("declare", "field"),
    [
        (_of(work, name=""), "name"),
        (_of(work, name="reprise:x"), "name"),
        (_of(work, name="x" * 257), "name"),
        (_of(work, max_attempt=3), "max_attempt"),
        (_of(work, timeout="soon"), "timeout"),
        (_of(work, rollback=5), "rollback"),
        (_of(work, rollback_options={"max_attempts": 2}), "rollback_options"),
        (_of(later, atomic=True), "atomic"),
        (_of(generator), "function"),
        (_of(Machine), "function"),
        (_of(unresolved), "argument `number`"),
        (_of(unresolved_output), "return type"),
        (_of(unusable_output), "return type"),
        (lambda: define_step(work).rollback(5), "rollback"),  # type: ignore[call-overload]
        (lambda: define_step(work).rollback(timeout="soon")(work), "rollback_options"),
    ],
)
def test_a_wrong_declaration_names_its_field(declare: Callable[[], Any], field: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        declare()
    assert caught.value.field == field
    assert caught.value.rule


@pytest.mark.parametrize(
    ("options", "error"),
    [({"limit": 3}, StepConfigError), ({"timeout": 0}, StepConfigError), ({"name": ""}, InvalidNameError)],
)
def test_wrong_overrides_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        define_step(work).using(**options)
    assert define_step(work).options_over(DEFAULTS).timeout == timedelta(minutes=10)


def test_defaults_that_cannot_be_hashed_are_taken_too() -> None:
    @dataclass
    class Delay:
        seconds: int

        def __call__(self, ctx: StepContext, error: BaseException) -> int:
            return self.seconds

    delay = Delay(3)
    assert define_step(work).options_over(StepOptions.make(delay=delay)).delay is delay
