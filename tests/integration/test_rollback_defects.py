"""Rollbacks when the engine fails, or the database refuses what they record: nothing hangs, nothing is forgotten."""

from __future__ import annotations

import pytest

from engine import RollbackContext, WorkflowStep, workflow
from engine.declare.registry import Workflow
from engine.replay.cycle import Cycle
from engine.replay.rollback.operation import RollbackOperation
from tests.integration.test_given_up import refusing_ends
from tests.records import lines
from tests.stories import run_to_end, running_shift, wait_for
from tests.violations import violations

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")


@pytest.fixture
def undone() -> list[str]:
    return []


@pytest.fixture
def story(undone: list[str]) -> Workflow[None, None]:
    def undo(ctx: RollbackContext) -> None:
        undone.append(ctx.name)

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=undo)
        await step.do("b", str, rollback=undo)
        raise LookupError("original")

    return story


@pytest.fixture(autouse=True)
def _verified(engine_db: None) -> object:
    yield
    assert violations() == []


def test_an_end_that_is_refused_pauses_and_keeps_the_error_for_later(
    story: Workflow[None, None], undone: list[str]
) -> None:
    instance = story.start()
    with running_shift():
        with refusing_ends():
            wait_for(instance, "paused")
        assert (instance.pause_reason["type"], instance.error["message"]) == ("GivenUpError", "original")
        resumed = instance.resume()
        assert (resumed.pause_reason, resumed.error["message"]) == (None, "original")
        wait_for(instance)
    assert (instance.status, instance.rollback, instance.error["message"]) == (
        "errored",
        "complete",
        "original",
    )
    # The end of the last one was to be recorded with the end of all, so its attempt is lost.
    assert undone == ["b", "a", "a"]


def test_a_defect_amid_the_rollbacks_fails_them_and_they_can_be_retried(
    story: Workflow[None, None], undone: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = RollbackOperation.begin

    def fail_at_the_first(operation: RollbackOperation) -> None:
        if operation.record.name == "a":
            raise RuntimeError("a defect")
        begin(operation)

    with monkeypatch.context() as patch:
        patch.setattr(RollbackOperation, "begin", fail_at_the_first)
        instance = run_to_end(story.start())
    assert (instance.status, instance.rollback, instance.error["message"]) == (
        "errored",
        "failed",
        "original",
    )
    assert lines(instance) == ["The rollbacks were given up: a defect"]
    instance.retry_rollback()
    run_to_end(instance)
    assert (instance.rollback, instance.error["message"], undone) == ("complete", "original", ["b", "a"])


def test_an_instance_that_a_defect_ends_is_rolled_back(
    story: Workflow[None, None], undone: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver = Cycle._deliver_arrived

    def fail_later(cycle: Cycle) -> bool:
        if cycle.deliveries.arrived and cycle.deliveries.arrived[0].record.name == "b":
            raise RuntimeError("a defect")
        return deliver(cycle)

    monkeypatch.setattr(Cycle, "_deliver_arrived", fail_later)
    instance = run_to_end(story.start())
    assert (instance.status, instance.rollback, instance.error["message"]) == (
        "errored",
        "complete",
        "a defect",
    )
    assert undone == ["b", "a"]
