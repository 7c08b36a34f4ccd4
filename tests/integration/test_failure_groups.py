"""Groups of failures: what workers write, what is read of it, what people decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine import (
    FailureNotFoundError,
    StepContext,
    WorkflowStep,
    failures,
    workflow,
)
from engine.models import Attempt
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
    assert failures.instances(["0123456789abcdef"]) == failures.FailedInstances([], None, 0, 0, 0)
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
        [instance.key], None, 0, 0, 1
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
