"""Code that changed under a running instance, and limits of a handler."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection, transaction

from engine import WorkflowStep, workflow, workflows
from engine.models import Instance
from engine.steer.lifecycle import lock
from tests.integration.sessions import together
from tests.records import statuses, step, steps
from tests.stories import run_to_end, running_shift, wait_for

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")


@dataclass
class Order:
    sku: str


@dataclass
class StricterOrder:
    sku: str
    warehouse: int


def deploy(handler: Any) -> Any:
    """Declare the workflow "story" anew, as a deployment of other code does."""
    workflows._workflows.pop("story", None)
    return workflow(name="story")(handler)


def test_params_that_the_new_type_refuses_pause_the_instance_until_code_fits_again() -> None:
    """Guarantee 4: nothing runs, nothing is overwritten, and the reason names both sides."""

    async def old(step: WorkflowStep, params: Order) -> str:
        await step.wait_for_event("go")
        return params.sku

    async def new(step: WorkflowStep, params: StricterOrder) -> str:
        return await step.do("never", lambda: params.sku)

    instance = deploy(old).start(Order("a-1"))
    with running_shift():
        wait_for(instance, "waiting")
    deploy(new)
    instance.send_event("go")
    with running_shift():
        wait_for(instance, "paused")
        assert instance.pause_reason["type"] == "NonDeterminismError"
        assert (
            'Recorded: {"sku":"a-1"}. Now: at $.warehouse, Field required.'
            in instance.pause_reason["message"]
        )
        assert (instance.params, statuses(instance)) == ({"sku": "a-1"}, {"go": "waiting"})
        assert instance.resume().status == "queued"
        wait_for(instance, "paused")
    deploy(old)
    instance.resume()
    run_to_end(instance)
    assert (instance.status, instance.output, instance.error) == ("complete", "a-1", None)


def test_a_recorded_output_that_the_new_type_refuses_pauses_the_instance() -> None:
    ran: list[str] = []

    def old_find() -> dict[str, str]:
        return {"sku": "a-1"}

    def new_find() -> StricterOrder:
        return StricterOrder("a-1", 7)

    def story_of(find: Any) -> Any:
        async def handler(step: WorkflowStep) -> str:
            found = await step.do("find", find)
            await step.wait_for_event("go")
            ran.append("after")
            return str(found)

        return deploy(handler)

    instance = story_of(old_find).start()
    with running_shift():
        wait_for(instance, "waiting")
    story_of(new_find)
    instance.send_event("go")
    with running_shift():
        wait_for(instance, "paused")
    assert 'The recorded output of step "find" does not match' in instance.pause_reason["message"]
    assert 'Recorded: {"sku":"a-1"}. Now: at $.warehouse, Field required.' in instance.pause_reason["message"]
    assert step(instance, "find").output == {"sku": "a-1"}
    story_of(old_find)
    instance.resume()
    run_to_end(instance)
    assert (instance.output, ran) == ("{'sku': 'a-1'}", ["after"])


def test_the_reason_does_not_tell_a_sensitive_output() -> None:
    def story_of(find: Any) -> Any:
        async def handler(step: WorkflowStep) -> None:
            await step.do("find", find, sensitive=True)
            await step.wait_for_event("go")

        return deploy(handler)

    def old_find() -> str:
        return "hunter2"

    def new_find() -> int:
        raise AssertionError("it is recorded")

    instance = story_of(old_find).start()
    with running_shift():
        wait_for(instance, "waiting")
        story_of(new_find)
        instance.pause()
        instance.resume()
        wait_for(instance, "paused")
    assert "Recorded: (a sensitive value). Now: at $, " in instance.pause_reason["message"]
    assert "hunter2" not in json.dumps(instance.pause_reason)


def test_new_code_may_insert_and_reorder_steps_and_a_renamed_one_is_new() -> None:
    """Guarantee 3"""
    ran: list[str] = []

    def body(name: str) -> Any:
        return lambda: ran.append(name) or name

    async def old(step: WorkflowStep) -> list[str]:
        a = await step.do("a", body("a"))
        b = await step.do("b", body("b"))
        c = await step.do("c", body("c"))
        await step.wait_for_event("go")
        return [a, b, c]

    async def new(step: WorkflowStep) -> list[str]:
        b = await step.do("b", body("b"))
        x = await step.do("x", body("x"))
        a = await step.do("a", body("a"))
        await step.wait_for_event("go")
        return [b, x, a, await step.do("renamed c", body("renamed c"))]

    instance = deploy(old).start()
    with running_shift():
        wait_for(instance, "waiting")
    deploy(new)
    instance.send_event("go")
    run_to_end(instance)
    assert instance.error is None
    assert instance.output == ["b", "x", "a", "renamed c"]
    assert ran == ["a", "b", "c", "x", "renamed c"]


def test_an_instance_whose_workflow_the_worker_does_not_know_is_left_alone() -> None:
    """Guarantee 4"""

    async def handler(step: WorkflowStep) -> str:
        return "done"

    instance = deploy(handler).start()
    workflows._workflows.pop("story")

    @workflow
    async def other(step: WorkflowStep) -> None:
        await step.sleep("park", 0.01)

    with running_shift():
        wait_for(other.start())
        assert instance.refresh().status == "queued"
    deploy(handler)
    assert run_to_end(instance).output == "done"


def test_a_step_recorded_as_one_kind_is_another_one_as_another_kind() -> None:
    """Guarantee 3: kinds never share a key, so a do that became a sleep is a new step."""

    async def old(step: WorkflowStep) -> None:
        await step.do("pause", str)
        await step.wait_for_event("go")

    async def new(step: WorkflowStep) -> None:
        await step.sleep("pause", 0.01)
        await step.wait_for_event("go")

    instance = deploy(old).start()
    with running_shift():
        wait_for(instance, "waiting")
    deploy(new)
    instance.send_event("go")
    run_to_end(instance)
    assert [row[:2] for row in steps(instance)] == [("do", "pause"), ("event", "go"), ("sleep", "pause")]


def greeting() -> Any:
    @workflow
    async def greeter(step: WorkflowStep) -> Any:
        await step.listen("greet")
        return "hello"

    return greeter


def test_a_call_that_shares_its_kind_with_the_recorded_one_does_not_take_its_outcome() -> None:
    """A handle is no output of a child: the instance is paused with both calls named"""
    greeter = greeting()

    async def old(step: WorkflowStep) -> Any:
        await step.spawn("greet", greeter)
        await step.listen("go")

    async def new(step: WorkflowStep) -> Any:
        return await step.run_workflow("greet", greeter)

    instance = deploy(old).start()
    with running_shift():
        wait_for(instance, "waiting")
        deploy(new)
        instance.send_event("go")
        wait_for(instance, "paused", "complete")
    assert (instance.status, instance.pause_reason["type"]) == ("paused", "NonDeterminismError")
    assert "recorded by step.spawn and is now called by step.run_workflow" in instance.pause_reason["message"]


def test_a_wait_for_an_instance_that_became_a_child_starts_none_and_does_not_take_its_output() -> None:
    other = greeting().start()

    async def old(step: WorkflowStep) -> Any:
        return (await step.wait_for_instance("greet", other)).status

    async def new(step: WorkflowStep) -> Any:
        return await step.run_workflow("greet", "greeter")

    instance = deploy(old).start()
    with running_shift():
        wait_for(instance, "waiting")
        wait_for(other, "waiting")
        deploy(new)
        instance.pause()
        other.send_event("greet")
        wait_for(other)
        instance.resume()
        wait_for(instance, "paused", "complete")
        assert (instance.status, instance.pause_reason["type"]) == ("paused", "NonDeterminismError")
        deploy(old)
        instance.resume()
        wait_for(instance)
    assert instance.output == "complete"


def test_one_name_for_two_calls_about_instances_is_an_error_where_names_are_identities() -> None:
    greeter = greeting()

    @workflow(step_identity="name")
    async def named(step: WorkflowStep) -> Any:
        await step.spawn("greet", greeter)
        return await step.run_workflow("greet", greeter)

    instance = named.start()
    with running_shift():
        wait_for(instance, "paused", "complete")
    assert (instance.status, instance.pause_reason["type"]) == ("paused", "NonDeterminismError")
    assert steps(instance) == [("child", "greet", 1, "complete")]


@pytest.mark.second_tier
def test_the_ten_thousand_and_first_step_is_refused() -> None:
    """Section 7"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        for number in range(10_001):
            step.do(f"n{number}", str)

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["type"]) == ("errored", "LimitError")
    assert "is 10,001; the limit is 10,000." in instance.error["message"]
    assert len(steps(instance)) == 10_000


@pytest.mark.second_tier
def test_a_thousand_steps_in_a_row_and_side_by_side_are_replayed_whole() -> None:
    @workflow
    async def story(step: WorkflowStep) -> int:
        async def double(number: int) -> int:
            return 2 * number

        total = sum(await asyncio.gather(*(step.do("n", double, number) for number in range(500))))
        for number in range(500):
            total += await step.do("m", double, number)
        await step.sleep("park", 0.01)
        return total

    instance = run_to_end(story.start())
    assert instance.output == 4 * sum(range(500))


def test_neighbours_go_on_while_the_database_refuses_the_records_of_one(
    poison: Callable[[Instance], None],
) -> None:
    """The flush is split until the poisoned record stands alone; its instance fails, and only that."""

    @workflow
    async def story(step: WorkflowStep, params: str) -> str:
        return await step.do("work", lambda: params)

    instances = [story.start(f"n{number}") for number in range(20)]
    poison(instances[7])
    with running_shift():
        ends = [wait_for(instance).status for instance in instances]
    assert ends == ["complete"] * 7 + ["errored"] + ["complete"] * 12
    assert "poison" in instances[7].error["message"]
    assert statuses(instances[7]) == {"work": "cancelled"}


@pytest.fixture
def poison(engine_db: None) -> Iterator[Callable[[Instance], None]]:
    """Let the database refuse every completed step of an instance."""

    def refuse(instance: Instance) -> None:
        condition = f"instance_id <> {instance.key} OR status <> 'complete'"
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE engine_step ADD CONSTRAINT poison CHECK ({condition})")

    yield refuse
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE engine_step DROP CONSTRAINT IF EXISTS poison")


def test_an_open_transaction_on_an_instance_delays_no_other() -> None:
    """Guarantee 19"""

    @workflow
    async def story(step: WorkflowStep, params: str) -> str:
        await step.sleep("park", 0.01)
        return await step.do("work", lambda: params)

    held = story.start("held")
    with running_shift():
        with transaction.atomic():
            lock(held)
            [free, status] = elsewhere(
                lambda: [wait_for(story.start("free")).output, Instance.objects.get(key=held.key).status]
            )
            assert free == "free"
            assert status in ("queued", "running", "waiting")
        assert wait_for(held).output == "held"


def elsewhere(work: Callable[[], Any]) -> Any:
    """Do it in another session."""
    [result] = together(1, lambda number: work())
    if isinstance(result, Exception):
        raise result
    return result
