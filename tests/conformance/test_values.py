"""Names and values that cannot be kept."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from pydantic import BaseModel

from engine import (
    Event,
    InvalidNameError,
    InvalidValueError,
    StepContext,
    StepError,
    WorkflowStep,
    workflow,
)
from engine.models import Instance, Log
from tests.records import outcomes, steps
from tests.stories import run_to_end


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
        said = "does not match its type int" if kind == "typed" else "cannot be stored"
        assert instance.output.startswith(f'The output of step "make" {said}. At $: ')
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
    """LC-13, LC-22 (our prefix): for every kind"""
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


class Animal(BaseModel):
    name: str


class Dog(Animal):
    tail: int


class Row(TypedDict):
    id: int


def test_an_object_with_fields_that_its_annotation_does_not_declare_is_refused() -> None:
    """Guarantee 1: what comes back is what was returned (ours)"""

    @workflow
    async def story(step: WorkflowStep, params: str) -> Animal:
        def make() -> Animal:
            return Dog(name="Rex", tail=3)

        async def make_all() -> list[Animal]:
            return [Animal(name="Tom"), Dog(name="Rex", tail=3)]

        def make_each(item: int, index: int) -> Animal:
            return make()

        if params == "map":
            await step.map("make", [1], make_each)
        elif params == "workflow":
            return Dog(name="Rex", tail=3)
        await step.do("make", make_all if params == "list" else make)
        return Animal(name="Tom")

    for kind, path in {"one": "$", "list": "$[1]", "map": "$", "workflow": "$"}.items():
        instance = run_to_end(story.start(kind))
        assert (instance.status, instance.error["type"]) == ("errored", "InvalidValueError"), kind
        assert f'At {path}: A Dog has the field "tail"' in instance.error["message"], kind


def test_keys_of_a_dict_that_its_annotation_does_not_declare_are_named_in_the_log() -> None:
    """They go, as pydantic has it; but not without a word (ours)"""

    @workflow
    async def story(step: WorkflowStep) -> Row:
        def fetch() -> Animal:
            return {"name": "Tom", "lives": 9}  # type: ignore[return-value]

        def secret() -> Animal:
            return {"name": "Tom", "s3cr3t": 9}  # type: ignore[return-value]

        async def parent() -> list[Row]:
            return await step.do("nested", rows)

        def rows() -> list[Row]:
            return [{"id": 1, "note": "x"}]  # type: ignore[typeddict-unknown-key]

        animal = await step.do("fetch", fetch)
        await step.do("atomic", fetch, atomic=True)
        await step.do("secret", secret, sensitive=True)
        await step.do("parent", parent)
        await step.sleep("park", 0.01)
        return {"id": 1, "of": animal.name}  # type: ignore[typeddict-unknown-key]

    instance = run_to_end(story.start())
    assert (instance.error, instance.output) == (None, {"id": 1})
    lines = Log.objects.filter(instance=instance).order_by("key").values_list("level", "message", "step_seq")
    not_kept = "Part of the output was not kept: "
    assert list(lines) == [
        ("warning", f'{not_kept}at $, Animal does not declare the field "lives".', 1),
        ("warning", f'{not_kept}at $, Animal does not declare the field "lives".', 2),
        ("warning", f"{not_kept}(a sensitive value).", 3),
        ("warning", f'{not_kept}at $[0], the annotated type does not declare the field "note".', 5),
        ("warning", f'{not_kept}at $, the annotated type does not declare the field "of".', None),
    ]


def test_params_and_payloads_lose_no_field_of_a_subclass_either() -> None:
    @workflow
    async def story(step: WorkflowStep, params: Animal) -> None:
        """Nothing is started."""

    arrival = Event("arrival", Animal)
    for call in (
        lambda: story.start(Dog(name="Rex", tail=3)),
        lambda: arrival.encode(Dog(name="Rex", tail=3)),
    ):
        with pytest.raises(InvalidValueError, match='A Dog has the field "tail"'):
            call()
    assert Instance.objects.count() == 0
