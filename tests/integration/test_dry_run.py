"""`manage.py workflow replay`: what today's code would do with the open instances."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from engine import RollbackContext, StepError, WorkflowStep, workflows
from engine.models import Step
from tests.integration.dry_runs import deploy, note, only, parked, ran, replay, sell
from tests.stories import run_to_end, running_shift, wait_for

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")


@pytest.fixture(autouse=True)
def _nothing_ran() -> Iterator[None]:
    ran.clear()
    yield
    ran.clear()


# Nothing to report


def test_the_same_code_goes_on_and_exits_with_0() -> None:
    parked()
    assert replay() == (
        0,
        {"findings": [], "replayed": 1, "fits": 1, "differs": 0, "stops": 0, "unknown": 0},
    )


def test_steps_at_the_end_are_no_difference_and_finished_instances_are_not_asked() -> None:
    parked()
    other = parked()
    other.send_event("packed")
    run_to_end(other)
    ran.clear()

    async def longer(step: WorkflowStep) -> None:
        await sell(step)
        await step.do("thank", note, "thank")

    deploy(longer)
    code, found = replay()
    assert (code, found["replayed"], found["fits"]) == (0, 1, 1)


def test_a_failure_that_is_recorded_is_no_error_of_the_code() -> None:
    def fail() -> None:
        raise ValueError("no")

    async def guarded(step: WorkflowStep) -> None:
        try:
            await step.do("charge", fail, max_attempts=1)
        except StepError:
            await step.wait_for_event("retry")

    async def unguarded(step: WorkflowStep) -> None:
        await step.do("charge", fail, max_attempts=1)

    parked(guarded)
    assert replay()[0] == 0
    deploy(unguarded)
    assert only()["unreached_steps"] == ["retry"]


def test_open_steps_of_every_kind_are_continued_without_running_anything() -> None:
    async def child(step: WorkflowStep) -> None:
        await step.wait_for_event("go")

    async def busy(step: WorkflowStep) -> None:
        await step.progress("started")
        await asyncio.gather(
            step.sleep("nap", "1 day"),
            step.wait_for_event("packed", timeout="1 day"),
            step.request("approve", bool, message="Ship it?"),
            step.run_workflow("child", workflows["child"]),
            step.map("items", [1, 2], always_fails, max_attempts=5, delay="1h"),
            step.do("retry", always_fails, 1, max_attempts=5, delay="1h"),
        )

    deploy(child, "child")
    parked(busy)
    code, found = replay("--all-open", "--workflow", "sell")
    assert (code, found["replayed"], found["fits"]) == (0, 1, 1)


def always_fails(item: int, index: int = 0) -> None:
    ran.append("always fails")
    raise RuntimeError("not yet")


# What would stop


def test_params_that_no_longer_match_their_type_would_stop_it() -> None:
    class Order(BaseModel):
        number: str

    class OrderNow(BaseModel):
        number: str
        currency: str

    async def bill(step: WorkflowStep, order: Order) -> None:
        await step.wait_for_event("packed")

    async def bill_now(step: WorkflowStep, order: OrderNow) -> None:
        await step.wait_for_event("packed")

    parked(typed(bill, Order), {"number": "A-1"})
    deploy(typed(bill_now, OrderNow))
    found = only()
    assert (found["verdict"], found["error"], found["step"]) == ("stops", "NonDeterminismError", None)
    assert "currency" in found["reason"]


def typed(handler: Any, params: type) -> Any:
    handler.__annotations__ = {"step": WorkflowStep, "order": params, "return": None}
    return handler


def test_a_recorded_output_that_no_longer_matches_its_type_would_stop_it_at_that_step() -> None:
    def count() -> int:
        return 3

    def name() -> dict[str, int]:
        return {}

    count.__annotations__, name.__annotations__ = {"return": int}, {"return": dict[str, int]}

    async def before(step: WorkflowStep) -> None:
        await step.do("charge", note, "charge")
        await step.do("count", count)
        await step.wait_for_event("packed")

    async def now(step: WorkflowStep) -> None:
        await step.do("charge", note, "charge")
        await step.do("count", name)
        await step.wait_for_event("packed")

    parked(before)
    deploy(now)
    found = only()
    assert (found["verdict"], found["error"], found["step"]) == ("stops", "NonDeterminismError", "count")


def test_a_handler_that_raises_before_its_next_step_would_stop() -> None:
    async def now(step: WorkflowStep) -> None:
        raise KeyError(await step.do("charge", note, "charge"))

    parked()
    deploy(now)
    found = only()
    assert (found["verdict"], found["error"], found["step"]) == ("stops", "KeyError", "charge")
    assert 'after step "charge"' in found["reason"]


def test_a_handler_that_loops_would_stop_and_does_not_stop_the_dry_run() -> None:
    async def now(step: WorkflowStep) -> None:
        await step.do("charge", note, "charge")
        while True:
            len("")

    parked()
    deploy(now)
    found = only("--all-open", "--timeout", "1")
    assert (found["verdict"], found["error"], found["step"]) == ("stops", "WorkflowTimeoutError", "charge")


def test_a_handler_that_waits_for_nothing_would_stop() -> None:
    async def now(step: WorkflowStep) -> None:
        await asyncio.Event().wait()

    parked()
    deploy(now)
    assert (only()["verdict"], only()["error"]) == ("stops", "DeadlockError")


def test_a_map_over_other_items_would_stop_where_it_is_open() -> None:
    async def over(step: WorkflowStep, items: list[int]) -> None:
        await step.map("items", items, always_fails, max_attempts=5, delay="1h")

    async def before(step: WorkflowStep) -> None:
        await over(step, [1, 2])

    async def now(step: WorkflowStep) -> None:
        await over(step, [1, 2, 3])

    parked(before)
    assert replay()[0] == 0
    deploy(now)
    found = only()
    assert (found["verdict"], found["error"], found["step"]) == ("stops", "NonDeterminismError", "items")


def test_changed_code_that_a_person_has_to_accept_would_stop_it() -> None:
    async def now(step: WorkflowStep) -> None:
        await sell(step)

    parked(on_code_change="pause")
    assert replay()[0] == 0
    deploy(now, on_code_change="pause")
    assert (only()["verdict"], only()["error"]) == ("stops", "CodeChangedError")


def test_an_instance_of_a_workflow_that_the_code_no_longer_has_is_named() -> None:
    instance = parked()
    del workflows._workflows["sell"]
    found = only()
    assert (found["workflow"], found["id"], found["verdict"]) == ("sell", instance.id, "unknown")
    assert found["reason"].startswith('The code declares no workflow "sell"')


def test_a_rollback_that_the_code_no_longer_has_would_stop() -> None:
    def undo(ctx: RollbackContext) -> None:
        ran.append("undo")
        raise RuntimeError("not yet")

    async def before(step: WorkflowStep) -> None:
        await step.do("charge", note, "charge", rollback=undo, rollback_options={"delay": "1h"})
        await step.do("ship", note, "ship")
        await step.fail("no")

    async def now(step: WorkflowStep) -> None:
        await step.do("charge", note, "charge")
        await step.do("ship", note, "ship")

    instance = deploy(before).start()
    with running_shift():
        wait_for(instance, "waiting")
    ran.clear()
    assert replay()[0] == 0
    deploy(now)
    assert (only()["error"], only()["step"]) == ("RollbackNotFoundError", "charge")


# What would take another way


def test_a_new_step_and_a_removed_one_are_named() -> None:
    async def now(step: WorkflowStep) -> None:
        await step.do("charge", note, "charge")
        await step.do("insure", note, "insure")
        await step.wait_for_event("packed")

    instance = parked()
    deploy(now)
    found = only()
    assert (found["id"], found["status"], found["verdict"]) == (instance.id, "waiting", "differs")
    assert (found["new_steps"], found["unreached_steps"]) == (["insure"], ["print-invoice", "packed"])
    assert found["step"] == "insure"


def test_a_step_that_is_no_longer_called_is_named() -> None:
    async def now(step: WorkflowStep) -> None:
        await step.do("charge", note, "charge")
        await step.wait_for_event("packed")

    parked()
    deploy(now)
    found = only()
    assert (found["verdict"], found["step"], found["new_steps"]) == ("differs", "print-invoice", [])


def test_a_new_step_beside_recorded_ones_is_named_even_if_the_handler_reaches_all_of_them() -> None:
    async def before(step: WorkflowStep) -> None:
        await asyncio.gather(step.wait_for_event("packed"), step.wait_for_event("paid"))

    async def now(step: WorkflowStep) -> None:
        calls = step.wait_for_event("packed"), step.do("insure", note, "insure"), step.wait_for_event("paid")
        await asyncio.gather(*calls)

    parked(before)
    assert replay()[0] == 0
    deploy(now)
    assert (only()["new_steps"], only()["unreached_steps"]) == (["insure"], [])


def test_a_step_that_a_pause_left_out_is_not_new() -> None:
    """The milestone after it is recorded, because the handler has gone on from there."""

    async def before(step: WorkflowStep) -> None:
        await asyncio.gather(step.wait_for_event("packed"), step.progress("asked"))

    instance = parked(before)
    Step.objects.filter(instance=instance, name="packed").delete()  # as the flush of a pause leaves it
    assert replay() == (
        0,
        {"findings": [], "replayed": 1, "fits": 1, "differs": 0, "stops": 0, "unknown": 0},
    )
