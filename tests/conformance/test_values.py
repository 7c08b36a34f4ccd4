"""Names and values that cannot be kept."""

from __future__ import annotations

from typing import Any

import pytest

from engine import InvalidNameError, StepContext, StepError, WorkflowStep, workflow
from tests.records import outcomes, steps
from tests.shifts import run_to_end


def test_an_output_that_cannot_be_stored_fails_the_step_at_once() -> None:
    """CF-91, LC-11, LC-20: one attempt, with the step's name; caught, the workflow goes on (ours)"""
    ran: list[int] = []

    @workflow
    async def story(step: WorkflowStep, params: str) -> str:
        def make(ctx: StepContext) -> Any:
            ran.append(ctx.attempt)
            return object()

        def typed(ctx: StepContext) -> int:
            ran.append(ctx.attempt)
            return "many"  # type: ignore[return-value]

        try:
            await step.do("make", make if params == "plain" else typed)
        except StepError as error:
            return error.message
        return "stored"

    for kind in ("plain", "typed"):
        ran.clear()
        instance = run_to_end(story.start(kind))
        assert ran == [1]
        assert instance.output.startswith('The output of step "make" cannot be stored. At $: ')
        assert outcomes(instance, "make") == ["errored"]


def test_uncaught_it_ends_the_instance_with_the_steps_name() -> None:
    """CF-91, LC-11"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("make", lambda: {"deep": [lambda: 1]})

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["step"], instance.error["type"]) == (
        "errored",
        "make",
        "InvalidValueError",
    )
    assert "$.deep[0]" in instance.error["message"]


@pytest.mark.parametrize("is_async", [False, True])
def test_an_output_over_one_mebibyte_names_step_size_and_limit(is_async: bool) -> None:
    """CF-92"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def amake() -> str:
            return "x" * 2**20

        await step.do("make", amake if is_async else lambda: "x" * 2**20)

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["type"]) == ("errored", "LimitError")
    assert (
        'output of step "make" is 1,048,578 bytes; the limit is 1,048,576 bytes' in instance.error["message"]
    )
    assert "Store large data elsewhere" in instance.error["message"]
    assert outcomes(instance, "make") == ["errored"]


def test_an_output_of_one_mebibyte_is_stored() -> None:
    """CF-92, the other side of the limit"""

    @workflow
    async def story(step: WorkflowStep) -> int:
        return len(await step.do("make", lambda: "x" * (2**20 - 2)))

    assert run_to_end(story.start()).output == 2**20 - 2


@pytest.mark.parametrize("name", ["x" * 257, "a\nb", "a\0b", "", " ", "reprise:spawn:x", "\ud800", 7])
def test_a_wrong_step_name_is_an_error_that_names_the_rule(name: Any) -> None:
    """LC-13, LC-22 (our prefix), F19: for every kind"""
    ran: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        said = []
        for call in (
            lambda: step.do(name, lambda: ran.append(1)),
            lambda: step.do(name)(lambda: ran.append(1)),
            lambda: step.sleep(name, 1),
            lambda: step.wait_for_event(name, "go"),
            lambda: step.listen(name),
        ):
            try:
                await call()
            except InvalidNameError as error:
                said.append(error.what)
        return said

    instance = run_to_end(story.start())
    assert instance.output == ["a step's name"] * 5
    assert (ran, steps(instance)) == ([], [])


def test_a_step_name_may_have_256_characters_of_any_script() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("日本 🎉 {x} <b>" + "x" * 244, str)

    instance = run_to_end(story.start())
    [(_, name, _, status)] = steps(instance)
    assert (len(name), status) == (256, "complete")
