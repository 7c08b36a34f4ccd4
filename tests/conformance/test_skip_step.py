"""Steps whose output a person supplies: `skip_step`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from engine import (
    InvalidValueError,
    LimitError,
    RollbackContext,
    StepNotSkippableError,
    WorkflowStep,
    workflow,
)
from engine.models import Audit, Instance
from tests import shifts
from tests.conformance.test_exhausted import PAUSING, Provider, audited, paused
from tests.records import step
from tests.stories import run_to_end, running_shift, wait_for
from tests.violations import violations


@pytest.fixture(autouse=True)
def _verified() -> Iterator[None]:
    yield
    assert violations() == []


@dataclass
class Receipt:
    number: int


def test_an_exhausted_step_gets_its_output_from_a_person_and_is_not_rolled_back() -> None:
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.do("reserve", lambda: "reserved", rollback=provider.undo)
        number = await step.do("charge", provider.charge, rollback=provider.undo, **PAUSING)
        await step.fail(f"after {number}")
        return ""

    instance = paused(story.start())
    instance.skip_step("charge", output="by hand", by="ana", reason="charged at the bank")
    charge = step(instance, "charge")
    assert (charge.status, charge.output, charge.error, charge.delivery) == (
        "complete",
        "by hand",
        None,
        None,
    )
    assert (charge.options["decision"], instance.status) == ({"outcome": "skipped", "by": "ana"}, "queued")
    run_to_end(instance)
    assert (instance.error["message"], provider.undone, len(provider.keys)) == (
        "after by hand",
        ["reserved"],
        2,
    )
    assert step(instance, "charge").delivery == 2
    entry = Audit.objects.get(instance_key=instance.key)
    assert (entry.verb, entry.reason, entry.data) == (
        "skip_step",
        "charged at the bank",
        {"steps": ["charge"], "total": 1},
    )


def test_none_is_an_output_and_typed_outputs_are_read_as_the_handler_wants_them() -> None:
    def charge() -> Receipt:
        raise ConnectionError

    def nothing() -> None:
        raise ConnectionError

    seen: list[object] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        seen.append(await step.do("nothing", nothing, **PAUSING))
        seen.append(await step.do("charge", charge, **PAUSING))

    instance = paused(story.start())
    instance.skip_step("nothing")
    paused(instance).skip_step("charge", output={"number": 7})
    run_to_end(instance)
    assert (instance.status, seen[-2:]) == ("complete", [None, Receipt(7)])


def test_an_output_that_the_code_does_not_accept_pauses_with_the_reason() -> None:
    def charge() -> Receipt:
        raise ConnectionError

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("charge", charge, **PAUSING)

    instance = paused(story.start())
    instance.skip_step("charge", output="seven")
    assert paused(instance).pause_reason["type"] == "NonDeterminismError"


def test_a_step_that_backs_off_is_skipped_at_once() -> None:
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.do("charge", provider.charge, delay="1h", backoff="constant")

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
    instance.skip_step("charge", output="by hand", by="ana")
    assert instance.status == "waiting"
    run_to_end(instance)
    assert (instance.output, len(provider.keys)) == ("by hand", 1)
    assert audited(instance) == [("skip_step", "ana", "waiting", "waiting")]


def test_a_step_of_a_paused_instance_is_skipped_and_a_person_resumes_it() -> None:
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.do("charge", provider.charge, delay="1h", backoff="constant")

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
    instance.pause()
    instance.skip_step("charge", output="by hand")
    assert instance.status == "paused"
    instance.resume()
    run_to_end(instance)
    assert instance.output == "by hand"


def test_an_item_of_a_map_can_be_skipped() -> None:
    def work(item: int, index: int) -> int:
        if item == 1:
            raise ConnectionError
        return item

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        return await step.map("work", [0, 1], work, **PAUSING)

    instance = paused(story.start())
    instance.skip_step("work", 2, output=11)
    run_to_end(instance)
    assert instance.output == [0, 11]


def test_a_skip_would_break_a_guarantee_and_is_refused() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("done", lambda: 1)
        await asyncio.gather(
            step.request("gate", None, message="Ship?"), step.sleep("nap", "1h"), step.listen("go")
        )

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
    refusals: dict[str, str] = {
        "gate": "only an answer or its timeout decides a request",
        "nap": "end the sleep with wake_now",
        "go": "send the event that it waits for",
        "done": "it is complete",
        "never": "the current generation has no such step",
    }
    for name, problem in refusals.items():
        with pytest.raises(StepNotSkippableError, match=problem):
            instance.skip_step(name, output=1)
    assert audited(instance) == []


def test_a_running_attempt_is_not_skipped() -> None:
    entered, out = threading.Event(), threading.Event()

    def body() -> str:
        entered.set()
        assert out.wait(60)
        return "done"

    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.do("long", body)

    instance = story.start()
    with shifts.running_shift():
        assert entered.wait(60)
        with pytest.raises(StepNotSkippableError, match="pause it first"):
            instance.skip_step("long")
        out.set()
        shifts.wait_for(instance)
    assert instance.output == "done"


def test_what_cannot_be_an_output_changes_nothing() -> None:
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.do("charge", provider.charge, **PAUSING)

    instance = paused(story.start())
    wrong: list[tuple[Any, type[Exception]]] = [
        (float("nan"), InvalidValueError),
        (object(), InvalidValueError),
        ("x" * 2**20, LimitError),
    ]
    for value, error in wrong:
        with pytest.raises(error):
            instance.skip_step("charge", output=value)
    assert (instance.refresh().status, audited(instance)) == ("paused", [])


def test_nested_steps_of_a_skipped_step_are_given_up_and_cannot_be_skipped_themselves() -> None:
    def fails() -> None:
        raise ConnectionError

    @workflow
    async def story(step: WorkflowStep) -> Any:
        async def outer() -> int:
            await step.do("inner", fails, delay="1h", max_attempts=3)
            return 1

        return await step.do("outer", outer, timeout="50ms", max_attempts=1, on_exhausted="pause")

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_for(instance, "paused")
    assert (step(instance, "outer").status, step(instance, "inner").status) == ("waiting", "waiting")
    with pytest.raises(StepNotSkippableError, match="it is nested: skip the step around it"):
        instance.skip_step("inner")
    instance.skip_step("outer", output=3)
    assert step(instance, "inner").status == "cancelled"
    run_to_end(instance)
    assert instance.output == 3


def test_a_rollback_that_runs_is_not_disturbed() -> None:
    def undo(ctx: RollbackContext) -> None:
        raise ConnectionError

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("charge", lambda: 1, rollback=undo, rollback_options={"delay": "1h"})
        await step.fail("no")

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
    with pytest.raises(StepNotSkippableError, match="it is complete"):
        instance.skip_step("charge")
    assert Instance.objects.get(key=instance.key).rollback == "running"
