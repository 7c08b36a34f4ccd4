"""How an instance ends: by its return, by what it raises, by fail, abort and complete."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine import StepError, WorkflowStep, workflow
from tests import shifts
from tests.records import lines, outcomes, statuses, step, steps
from tests.stories import run_to_end


def test_a_workflow_without_steps_completes_in_one_cycle() -> None:
    """HC-01"""
    runs: list[int] = []

    @workflow
    async def story(step: WorkflowStep, params: int) -> int:
        runs.append(1)
        return params + 1

    instance = run_to_end(story.start(41))
    assert (instance.status, instance.output, runs, steps(instance)) == ("complete", 42, [1], [])


def test_a_step_is_durable_without_being_asked() -> None:
    """HC-02"""

    @workflow
    async def story(step: WorkflowStep) -> int:
        return await step.do("work", lambda: 1)

    instance = run_to_end(story.start())
    row = step(instance, "work")
    assert (row.status, row.output, row.delivery, instance.output) == ("complete", 1, 1, 1)


def test_two_steps_under_gather_both_run_and_are_recorded() -> None:
    """KC-46"""

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        return list(await asyncio.gather(step.do("a", lambda: 1), step.do("b", lambda: 2)))

    instance = run_to_end(story.start())
    assert (instance.output, statuses(instance)) == ([1, 2], {"a": "complete", "b": "complete"})


def test_fail_ends_as_errored_with_its_message() -> None:
    """KC-19"""
    later: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.fail("no stock")
        later.append(1)

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["message"], later) == ("errored", "no stock", [])


@pytest.mark.parametrize("how", ["fail", "abort", "complete"])
def test_an_ending_that_is_swallowed_takes_effect_all_the_same(how: str) -> None:
    """KC-20, guarantee 9: `except Exception` does not catch it; a bare `except` only until the next operation"""
    later: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            await getattr(step, how)("so it is")
        except Exception:  # noqa: BLE001 - what the case is about
            later.append("caught")
        except BaseException:  # noqa: BLE001 - what the case is about
            later.append("swallowed")
        await step.do("after", lambda: later.append("after"))
        return "returned"

    @workflow
    async def returning(step: WorkflowStep) -> str:
        try:
            await getattr(step, how)("so it is")
        except BaseException:  # noqa: BLE001 - what the case is about
            return "returned"

    endings = {"fail": "errored", "abort": "terminated", "complete": "complete"}
    for declared in (story, returning):
        instance = run_to_end(declared.start())
        assert (instance.status, steps(instance)) == (endings[how], [])
        said = instance.output if how == "complete" else instance.error["message"]
        assert said == "so it is"
    assert later == ["swallowed"]


def test_an_ending_stands_when_another_branch_goes_on() -> None:
    """Guarantee 9: decided in one branch of a gather that returns its exceptions"""

    @workflow
    async def story(step: WorkflowStep) -> str:
        async def failing() -> None:
            await step.do("a", str)
            await step.fail("branch")

        async def sleeping() -> None:
            await step.sleep("long", "1h")

        await asyncio.gather(failing(), sleeping(), return_exceptions=True)
        return "done"

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["message"]) == ("errored", "branch")
    assert statuses(instance) == {"a": "complete", "long": "cancelled"}


def test_abort_ends_as_terminated_and_not_failed() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str)
        await step.abort("a duplicate")

    instance = run_to_end(story.start())
    assert (instance.status, instance.output) == ("terminated", None)
    assert (instance.error["type"], instance.error["message"]) == ("Aborted", "a duplicate")


def test_complete_ends_from_deep_within_with_its_output() -> None:
    """KC-44"""

    @workflow
    async def story(step: WorkflowStep) -> dict[str, int]:
        async def deep() -> None:
            await step.do("a", str)
            await step.complete({"found": 1})

        await deep()
        await step.do("never", str)
        return {}

    instance = run_to_end(story.start())
    assert (instance.status, instance.output, statuses(instance)) == (
        "complete",
        {"found": 1},
        {"a": "complete"},
    )


@pytest.mark.parametrize("message", [None, 7, "x" * 100_000, "a\0b\ud800", ["list"]])
def test_fail_and_abort_take_whatever_is_said(message: Any) -> None:
    @workflow
    async def story(step: WorkflowStep, params: str) -> None:
        await getattr(step, params)(message)

    for how, status in (("fail", "errored"), ("abort", "terminated")):
        instance = run_to_end(story.start(how))
        assert instance.status == status
        assert len(instance.error["message"]) <= 16 * 1024


def test_the_output_is_validated_by_the_return_type() -> None:
    """Section 2"""

    @workflow
    async def story(step: WorkflowStep, params: str) -> dict[str, int]:
        if params == "complete":
            await step.complete({"a": "many"})
        return {"a": "many"}  # type: ignore[dict-item]

    for how in ("return", "complete"):
        instance = run_to_end(story.start(how))
        assert (instance.status, instance.output, instance.error["type"]) == (
            "errored",
            None,
            "InvalidValueError",
        )
        assert "workflow's output" in instance.error["message"]
        assert "$.a" in instance.error["message"]


def test_steps_that_nobody_awaits_are_cancelled_when_the_handler_ends() -> None:
    """CF-100, guarantee 10: the instance is complete, and what was open is recorded as cancelled"""
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        async def slow() -> None:
            ran.append("slow")
            await asyncio.sleep(60)

        step.do("slow", slow)
        step.sleep("nap", "1h")
        await step.do("work", lambda: ran.append("work"))
        step.do("too late", lambda: ran.append("too late"))
        return "done"

    instance = shifts.run_to_end(story.start())
    assert (instance.status, instance.output) == ("complete", "done")
    assert statuses(instance) == {
        "slow": "cancelled",
        "nap": "cancelled",
        "work": "complete",
        "too late": "cancelled",
    }
    assert outcomes(instance, "slow") == ["cancelled"]
    assert sorted(ran) == ["slow", "work"]


def test_an_uncaught_error_of_the_handler_ends_as_errored_with_its_traceback() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str)
        raise LookupError("no such customer")

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["type"], instance.error["message"]) == (
        "errored",
        "LookupError",
        "no such customer",
    )
    assert "in story" in instance.error["traceback"]


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()]
)
def test_a_handler_that_exits_ends_its_instance_and_not_the_worker(error: BaseException) -> None:

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str)
        raise error

    instance = shifts.run_to_end(story.start())
    assert (instance.status, instance.error["type"]) == ("errored", type(error).__name__)


def test_progress_is_a_durable_milestone_said_once() -> None:
    """KC-47"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.progress("half way", 50)
        await step.sleep("park", 0.01)
        await step.progress("done")

    instance = run_to_end(story.start())
    assert steps(instance) == [
        ("progress", "half way", 1, "complete"),
        ("sleep", "park", 1, "complete"),
        ("progress", "done", 1, "complete"),
    ]
    assert [step(instance, name).output for name in ("half way", "done")] == [
        {"message": "half way", "percent": 50},
        {"message": "done", "percent": None},
    ]


@pytest.mark.parametrize("percent", ["half", True, [1], float("nan"), -1, 101])
def test_a_percentage_that_is_none_is_an_error_in_the_handler(percent: Any) -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            await step.progress("on the way", percent)
        except ValueError as error:
            return str(error)
        return "taken"

    instance = run_to_end(story.start())
    assert "percent" in instance.output
    assert steps(instance) == []


def test_lines_of_the_log_are_kept_once_with_their_fields() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        for name in "abc":
            step.log.info(f"before {name}", name=name)
            await step.do(name, lambda ctx: ctx.log.warning("in body"))
            await step.sleep("park", 0.01)
        step.log.error("end", object=object())

    instance = run_to_end(story.start())
    assert lines(instance) == [
        "before a",
        "in body",
        "before b",
        "in body",
        "before c",
        "in body",
        "end",
    ]


def test_a_failed_step_that_nobody_catches_names_itself() -> None:
    """LC-11 and guarantee 6, as the instance shows it"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        try:
            await step.do("first", lambda: 1 / 0, max_attempts=1)
        except StepError:
            await step.do("second", lambda: {}["missing"], max_attempts=1)

    instance = run_to_end(story.start())
    assert (instance.error["step"], instance.error["type"], instance.error["message"]) == (
        "second",
        "KeyError",
        "'missing'",
    )
