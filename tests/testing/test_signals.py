"""Signals of failures reach a test before `run` returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone

from engine import RollbackContext, StepContext, WorkflowStep, signals, workflow
from engine.models import Instance, Notice
from engine.testing import workflow_test


@pytest.fixture(autouse=True)
def _nothing_connected() -> Iterator[None]:
    yield
    for one in signals.SIGNALS.values():
        one.receivers = []


def test_receivers_are_called_before_run_returns_and_write_in_the_tests_transaction(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @workflow
    async def fails(step: WorkflowStep) -> None:
        raise LookupError("no")

    def receives(instance: Instance, error_type: str, **_: Any) -> None:
        Group.objects.create(name=f"{instance.status}: {error_type}")

    signals.instance_errored.connect(receives)
    with workflow_test(fails) as test:
        instance = test.run()
        assert list(Group.objects.values_list("name", flat=True)) == ["errored: LookupError"]
    assert f"Instance fails/{instance.id} failed: LookupError: no" in caplog.messages
    assert not Notice.objects.exists()


def test_a_crash_tells_of_the_lost_attempt_and_a_failed_rollback_of_its_step() -> None:
    told: list[tuple[str, str, int]] = []

    def undo(ctx: RollbackContext) -> None:
        raise ConnectionError("away")

    def charge(ctx: StepContext) -> int:
        return ctx.attempt

    @workflow
    async def pays(step: WorkflowStep) -> None:
        await step.do("charge", charge, rollback=undo, rollback_options={"max_attempts": 1})
        raise LookupError("no")

    def lost(step: str, attempt: int, **_: Any) -> None:
        told.append(("lost", step, attempt))

    def failed(step: str, count: int, **_: Any) -> None:
        told.append(("failed", step, count))

    signals.attempt_lost.connect(lost)
    signals.rollback_failed.connect(failed)
    with workflow_test(pays) as test:
        test.crash_after("charge")
        test.run()
    assert told == [("lost", "charge", 1), ("failed", "charge", 1)]


def test_what_a_receiver_starts_runs_too() -> None:
    @workflow
    async def mends(step: WorkflowStep) -> str:
        return "mended"

    @workflow
    async def fails(step: WorkflowStep) -> None:
        raise LookupError("no")

    def receives(**_: Any) -> None:
        mends.start(id="one")

    signals.instance_errored.connect(receives, sender=fails)
    with workflow_test(fails) as test:
        test.run()
    assert mends.get("one").output == "mended"


def test_a_receiver_that_raises_breaks_neither_the_run_nor_its_transaction(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @workflow
    async def fails(step: WorkflowStep) -> None:
        raise LookupError("no")

    def breaks(**_: Any) -> None:
        Group.objects.create(name="x" * 1000)

    signals.instance_errored.connect(breaks)
    with workflow_test(fails) as test:
        assert test.run().status == "errored"
    assert Group.objects.count() == 0
    assert "breaks" in caplog.text


def test_a_receiver_may_end_the_test() -> None:
    @workflow
    async def fails(step: WorkflowStep) -> None:
        raise LookupError("no")

    def ends(**_: Any) -> None:
        pytest.fail("as the receiver says")

    signals.instance_errored.connect(ends)
    with pytest.raises(pytest.fail.Exception, match="as the receiver says"), workflow_test(fails) as test:
        test.run()


def test_what_is_left_to_another_process_does_not_keep_a_test_from_its_end() -> None:
    Notice.objects.create(kind="instance_errored", workflow="elsewhere", instance_id="a", at=timezone.now())
    told: list[str] = []

    @workflow
    async def fails(step: WorkflowStep) -> None:
        raise LookupError("no")

    def receives(workflow: str, **_: Any) -> None:
        told.append(workflow)

    signals.instance_errored.connect(receives)
    with workflow_test(fails) as test:
        assert test.run().status == "errored"
    assert told == ["fails"]
    assert Notice.objects.get().workflow == "elsewhere"
