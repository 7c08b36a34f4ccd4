"""Groups of failures: what workers write, and what is read of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from engine import (
    FailureNotFoundError,
    RollbackContext,
    StepContext,
    StepError,
    WorkflowStep,
    failures,
    workflow,
)
from engine.models import Attempt, Failure
from tests import shifts
from tests.records import crash
from tests.stories import run_to_end, running_shift, wait_for
from tests.violations import violations

pytestmark = [pytest.mark.usefixtures("engine_db", "own_registry")]


@pytest.fixture(autouse=True)
def nothing_is_violated(engine_db: None) -> Iterator[None]:
    yield
    assert violations() == []


def charge(ctx: StepContext) -> None:
    raise ValueError(f"card {ctx.attempt}000 was declined")


def only_group(**options: Any) -> failures.FailureGroup:
    (found,) = failures.groups(**options).groups
    return found


def test_without_failures_there_is_nothing_to_see() -> None:
    assert failures.groups() == failures.Groups([], None)
    assert failures.count_open() == 0
    assert failures.kin("0123456789abcdef") == []
    assert failures.sample_trace(["0123456789abcdef"]) is None
    assert failures.instances(["0123456789abcdef"]) == failures.FailedInstances([], None, 0, 0, 0, 0)
    for act in (failures.group, failures.resolve, failures.reopen):
        with pytest.raises(FailureNotFoundError):
            act("0123456789abcdef")


def test_failed_attempts_and_the_instance_that_ends_with_them_are_one_group() -> None:
    @workflow
    async def order(step: WorkflowStep) -> None:
        await step.do("charge", charge, max_attempts=3, delay=0)

    instance = run_to_end(order.start())
    found = only_group()
    assert (found.workflow, found.step, found.phase, found.type) == ("order", "charge", "do", "ValueError")
    assert found.message == "card ‹n› was declined"
    assert found.sample == "card 3000 was declined"
    assert found.frame == "tests/integration/test_failure_groups.py, charge"
    assert (found.state, found.errored, found.retrying, found.attempts) == ("open", 1, 0, 3)
    assert {one.fingerprint for one in Attempt.objects.all()} == {found.fingerprint}
    assert instance.refresh().fingerprint == found.fingerprint
    assert failures.group(found.fingerprint) == found
    assert failures.count_open() == 1


def test_an_instance_that_backs_off_is_counted_as_retrying_and_then_it_went_on() -> None:
    @workflow
    async def order(step: WorkflowStep) -> None:
        def body(ctx: StepContext) -> None:
            if ctx.attempt == 1:
                raise ConnectionError("no answer from 10.0.0.1")

        await step.do("charge", body, max_attempts=2, delay="1h")

    instance = order.start()
    with running_shift():
        wait_for(instance, "waiting")
        found = only_group()
        assert (found.errored, found.retrying) == (0, 1)
        assert failures.instances([found.fingerprint], which="retrying").keys == [instance.key]
        wait_for(instance)
    found = only_group()
    assert (found.errored, found.retrying, found.attempts) == (0, 0, 1)
    assert failures.instances([found.fingerprint], which="went_on") == failures.FailedInstances(
        [instance.key], None, 0, 0, 0, 1
    )


def test_an_instance_that_waits_for_a_decision_is_paused_and_has_not_gone_on() -> None:
    @workflow
    async def order(step: WorkflowStep) -> None:
        await step.do("charge", charge, max_attempts=1, on_exhausted="pause")

    instance = order.start()
    with running_shift():
        wait_for(instance, "paused")
    found = only_group()
    assert (found.errored, found.retrying, found.attempts) == (0, 0, 1)
    assert failures.instances([found.fingerprint], which="paused") == failures.FailedInstances(
        [instance.key], None, 0, 0, 1, 0
    )


def test_an_error_of_the_handler_has_a_group_without_a_step() -> None:
    @workflow
    async def order(step: WorkflowStep, number: int) -> None:
        raise KeyError(f"no {number}")

    for number in (1, 2):
        run_to_end(order.start(number))
    found = only_group()
    assert (found.step, found.type, found.errored, found.attempts) == ("", "KeyError", 2, 2)
    assert found.frame.endswith("order")
    trace = failures.sample_trace([found.fingerprint])
    assert trace is not None
    assert (trace.step_seq, trace.attempt, trace.error["type"]) == (None, None, "KeyError")


def test_the_same_error_in_two_workflows_is_kin() -> None:
    async def handle(step: WorkflowStep) -> None:
        await step.do("charge", charge, max_attempts=1)

    for name in ("orders", "refunds"):
        run_to_end(workflow(name=name)(handle).start())
    one, other = failures.groups().groups
    assert one.fingerprint != other.fingerprint
    assert one.kin == other.kin
    assert {group.workflow for group in failures.kin(one.fingerprint)} == {"orders", "refunds"}
    assert [group.workflow for group in failures.kin(one.fingerprint, workflows=["orders"])] == ["orders"]
    assert [group.workflow for group in failures.groups(workflows=["orders"]).groups] == ["orders"]
    with pytest.raises(FailureNotFoundError):
        failures.group(one.fingerprint, workflows=["none"])


SECRET = "hunter2"


def test_of_a_sensitive_step_only_the_class_of_the_error_is_kept() -> None:
    def body() -> None:
        raise ValueError(f"wrong password {SECRET}")

    @workflow
    async def login(step: WorkflowStep, way: str) -> None:
        async def outer(ctx: StepContext) -> None:
            await step.do("token", body, sensitive=True, max_attempts=1)

        match way:
            case "plain":
                await step.do("token", body, sensitive=True, max_attempts=1)
            case "nested":
                await step.do("outer", outer, max_attempts=1)
            case "raised":
                try:
                    await step.do("token", body, sensitive=True, max_attempts=1)
                except StepError as error:
                    raise RuntimeError(f"no token: {error}") from error

    for way in ("plain", "nested", "raised"):
        run_to_end(login.start(way))
    found = failures.groups().groups
    assert {(group.step, group.type) for group in found} == {
        ("token", "ValueError"),
        ("outer", "StepError"),
        ("", "RuntimeError"),
    }
    assert SECRET not in repr(found)
    assert SECRET not in repr(list(Failure.objects.values()))
    assert {(group.message, group.sample) for group in found} == {("", "")}


def test_an_instance_ends_with_the_group_of_the_step_also_after_its_worker_died() -> None:
    """The handler of the next worker has the record of the error, not the exception."""

    @workflow
    async def order(step: WorkflowStep) -> None:
        try:
            await step.do("charge", charge, max_attempts=1)
        except StepError:
            await step.sleep("nap", "1h")
            raise

    instance = order.start()
    with running_shift():
        wait_for(instance, "waiting")
    run_to_end(instance)
    found = only_group()
    assert (found.step, found.errored, found.attempts) == ("charge", 1, 1)


def test_an_error_after_a_caught_one_is_the_group_of_the_instance() -> None:
    @workflow
    async def order(step: WorkflowStep) -> None:
        with suppress(StepError):
            await step.do("charge", charge, max_attempts=1)
        raise LookupError("nothing left")

    instance = run_to_end(order.start())
    by_type = {group.type: group for group in failures.groups().groups}
    assert (by_type["ValueError"].errored, by_type["LookupError"].errored) == (0, 1)
    assert instance.refresh().fingerprint == by_type["LookupError"].fingerprint


def test_items_of_a_map_fail_alike() -> None:
    def check(number: int, index: int) -> None:
        raise ValueError(f"number {number}")

    @workflow
    async def order(step: WorkflowStep) -> None:
        await step.map("check", [1, 2], check, max_attempts=1)

    run_to_end(order.start())
    found = only_group()
    assert (found.step, found.errored) == ("check", 1)


@pytest.mark.parametrize("fails", [1, 9])
def test_a_rollback_has_a_group_which_the_instance_gets_if_it_fails_for_good(fails: int) -> None:
    def undo(ctx: RollbackContext) -> None:
        if ctx.attempt <= fails:
            raise ConnectionError("no answer")

    @workflow
    async def order(step: WorkflowStep) -> None:
        await step.do("book", lambda: 1, rollback=undo, rollback_options={"max_attempts": 2, "delay": 0})
        await step.do("charge", charge, max_attempts=1)

    instance = run_to_end(order.start())
    by_step = {(group.step, group.phase): group for group in failures.groups().groups}
    assert set(by_step) == {("book", "rollback"), ("charge", "do")}
    has_failed = fails > 1
    assert by_step["book", "rollback"].attempts == (2 if has_failed else 1)
    expected = by_step["book", "rollback"] if has_failed else by_step["charge", "do"]
    assert instance.refresh().fingerprint == expected.fingerprint
    assert (instance.rollback, expected.errored) == ("failed" if has_failed else "complete", 1)


def test_a_child_has_its_group_and_its_parent_another() -> None:
    @workflow
    async def bill(step: WorkflowStep) -> None:
        await step.do("charge", charge, max_attempts=1)

    @workflow
    async def order(step: WorkflowStep) -> None:
        await step.run_workflow("bill", bill)

    run_to_end(order.start())
    by_workflow = {group.workflow: group for group in failures.groups().groups}
    assert set(by_workflow) == {"bill", "order"}
    parents = by_workflow["order"]
    assert (parents.step, parents.type) == ("bill", "ChildWorkflowError")
    assert parents.message == "The child is errored: ValueError"
    assert parents.sample == parents.message, "what the child says is shown with the child only"
    assert parents.errored == 1


def test_a_lost_attempt_and_a_timeout_have_groups() -> None:
    began: list[int] = []

    @workflow
    async def order(step: WorkflowStep) -> None:
        async def slow(ctx: StepContext) -> None:
            began.append(ctx.attempt)
            await asyncio.sleep(30 if ctx.attempt < 3 else 0)

        await step.do("slow", slow, timeout="0.2s" if began else "1h", max_attempts=3, delay=0)

    instance = order.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: began == [1])
        crash()
    with shifts.running_shift():
        shifts.wait_for(instance)
    found = {group.type: group for group in failures.groups().groups}
    assert found["WorkerLostError"].message == "The worker was lost."
    assert found["WorkerLostError"].attempts == 1


def test_workers_that_meet_new_groups_in_different_orders_do_not_block_each_other() -> None:
    async def handle(step: WorkflowStep, names: list[str]) -> None:
        for name in names:
            with suppress(StepError):
                await step.do(name, charge, max_attempts=1)

    many = workflow(name="many")(handle)
    names = [f"step{chr(97 + one)}" for one in range(20)]
    instances = [many.start(names if number % 2 else names[::-1]) for number in range(12)]
    with (
        shifts.running_shift(name="one"),
        shifts.running_shift(name="two"),
        shifts.running_shift(name="three"),
    ):
        for instance in instances:
            shifts.wait_for(instance, "complete")
    assert Failure.objects.count() == 20
    assert [group.attempts for group in failures.groups().groups] == [12] * 20
