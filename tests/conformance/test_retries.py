"""Attempts: how many, how far apart, and what ends them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from engine import NonRetryableError, StepConfigError, StepContext, StepError, WorkflowStep, workflow
from engine.models import Instance
from tests import shifts
from tests.records import attempts, crash, outcomes, statuses, step, steps
from tests.stories import run_to_end, running_shift, wait_for, wait_until
from tests.travel import skip_wait


class Declined(NonRetryableError):
    pass


def failing(seen: list[int]) -> Callable[[StepContext], None]:
    def body(ctx: StepContext) -> None:
        seen.append(ctx.attempt)
        raise ValueError(f"no {ctx.attempt}")

    return body


def test_max_attempts_counts_all_executions() -> None:
    """CF-16, LC-05, KC-04: a limit of 2 retries is max_attempts=3"""
    seen: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("charge", failing(seen), max_attempts=3, delay=0)

    instance = run_to_end(story.start())
    assert seen == [1, 2, 3]
    assert outcomes(instance, "charge") == ["errored"] * 3
    assert instance.status == "errored"
    assert {key: instance.error[key] for key in ("type", "message", "step", "attempts")} == {
        "type": "ValueError",
        "message": "no 3",
        "step": "charge",
        "attempts": 3,
    }
    assert "in body" in instance.error["traceback"] or "StepError" in instance.error["traceback"]
    assert [one.error["message"] for one in attempts(instance, "charge")] == ["no 1", "no 2", "no 3"]


def test_one_attempt_means_no_retry() -> None:
    """CF-17: limit 0"""
    seen: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("charge", failing(seen), max_attempts=1)

    instance = run_to_end(story.start())
    assert (seen, instance.error["message"]) == ([1], "no 1")


@pytest.mark.parametrize(
    ("options", "waits"),
    [
        ({}, [1, 2, 4]),
        ({"delay": "1m"}, [60, 120, 240]),
        ({"delay": 100, "backoff": "exponential"}, [100, 200, 300]),
        ({"delay": 10, "backoff": "linear"}, [10, 20, 30]),
        ({"delay": 10, "backoff": "constant"}, [10, 10, 10]),
        ({"delay": lambda ctx, error: 1000 * ctx.attempt, "jitter": 1.0}, [1000, 2000, 3000]),
    ],
)
def test_delays_grow_by_the_backoff(options: dict[str, Any], waits: list[int]) -> None:
    """CF-19 (exponential unless said otherwise, up to max_delay), LC-10; what a function returns is used as it is"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("charge", failing([]), max_attempts=4, **options)

    instance = story.start()
    seen = []
    with running_shift():
        for number in range(1, 4):
            wait_until(lambda number=number: _backs_off_after(instance, number))
            last = attempts(instance, "charge")[-1]
            seen.append(step(instance, "charge").wake_at - last.finished_at)
            skip_wait(instance)
        wait_for(instance)
    assert seen == [timedelta(seconds=wait) for wait in waits]


def _backs_off_after(instance: Instance, number: int) -> bool:
    if statuses(instance) != {"charge": "waiting"} or outcomes(instance, "charge") != ["errored"] * number:
        return False
    row = instance.refresh()
    return (row.status, row.waiting_for) == ("waiting", "retry")


def test_the_delay_function_gets_the_context_and_the_error() -> None:
    """CF-22"""
    asked: list[tuple[int, str, str]] = []

    async def delay(ctx: StepContext, error: Exception) -> str:
        asked.append((ctx.attempt, ctx.name, str(error)))
        return "10ms"

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("charge", failing([]), max_attempts=3, delay=delay)

    instance = run_to_end(story.start())
    assert asked == [(1, "charge", "no 1"), (2, "charge", "no 2")]
    one, two, three = attempts(instance, "charge")
    for before, after in ((one, two), (two, three)):
        assert after.started_at - before.finished_at >= timedelta(milliseconds=10)


def raising(ctx: StepContext, error: Exception) -> float:
    raise KeyError("rates")


def rubbish(ctx: StepContext, error: Exception) -> str:
    return "soon"


@pytest.mark.parametrize(("delay", "reason"), [(raising, "rates"), (rubbish, '"soon"')])
def test_a_delay_function_that_fails_ends_the_attempts(delay: Any, reason: str) -> None:
    """CF-23: the error names the step and the reason"""
    seen: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("charge", failing(seen), delay=delay)

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["type"], seen) == ("errored", "DelayFunctionError", [1])
    assert 'The delay function of step "charge" failed' in instance.error["message"]
    assert reason in instance.error["message"]


@pytest.mark.parametrize(
    "options",
    [
        {"max_attempts": 0},
        {"max_attempts": -1},
        {"max_attempts": 10**9},
        {"max_attempts": "3"},
        {"max_attempts": True},
        {"limit": 2},
        {"retries": {"limit": 2}},
        {"timeout": 0},
        {"timeout": "1 month"},
        {"backoff": "fibonacci"},
        {"delay": "soon"},
        {"delay": -1},
        {"delay": float("nan")},
        {"max_delay": "2 days"},
        {"jitter": 2},
        {"once": "yes"},
        {"sensitive": 1},
    ],
)
def test_wrong_options_are_an_error_that_the_handler_can_catch(options: dict[str, Any]) -> None:
    """CF-20"""
    ran: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            await step.do("charge", lambda: ran.append(1), **options)
        except StepConfigError as error:
            return error.option
        return "nothing was wrong"

    instance = run_to_end(story.start())
    assert instance.output == next(iter(options))
    assert (ran, steps(instance)) == ([], [])


@pytest.mark.parametrize("message", ["card declined", ""])
def test_a_non_retryable_error_ends_the_attempts_at_once(message: str) -> None:
    """CF-25, CF-26, LC-08: subclasses and empty messages too; caught, the workflow goes on"""
    ran: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        def body() -> None:
            ran.append(1)
            raise Declined(message)

        try:
            await step.do("charge", body, max_attempts=4, delay=0)
        except StepError as error:
            await step.sleep("park", 0.01)
            return error.message
        return "no error"

    instance = run_to_end(story.start())
    assert (instance.output, ran) == (message, [1])
    assert statuses(instance) == {"charge": "errored", "park": "complete"}


def test_the_instance_shows_the_message_of_the_uncaught_error() -> None:
    """CF-28"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        def body() -> None:
            raise Declined("card declined")

        await step.do("charge", body)

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["message"], instance.error["step"]) == (
        "errored",
        "card declined",
        "charge",
    )
    assert instance.error["type"].endswith("Declined")


def test_a_backoff_survives_the_death_of_its_worker() -> None:
    """CF-31, guarantee 5: neither longer nor shorter. Another body keeps the instance in the worker."""
    seen: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        def flaky(ctx: StepContext) -> None:
            if ctx.attempt == 1:
                raise ValueError("no")

        async def neighbour(ctx: StepContext) -> None:
            seen.append(ctx.attempt)
            if ctx.attempt == 1:
                await asyncio.sleep(60)

        await asyncio.gather(
            step.do("flaky", flaky, delay="600ms"), step.do("neighbour", neighbour, timeout="2m")
        )

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: statuses(instance).get("flaky") == "waiting")
        due = step(instance, "flaky").wake_at
        crash()
        shifts.wait_for(instance)
    first, second = attempts(instance, "flaky")
    assert due == first.finished_at + timedelta(milliseconds=600)
    assert due <= second.started_at < due + timedelta(seconds=30)
    assert (outcomes(instance, "neighbour"), seen) == (["lost", "complete"], [1, 2])


def test_a_lost_attempt_spends_none_of_the_attempts() -> None:
    """Guarantee 5"""
    seen: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> int:
        async def body(ctx: StepContext) -> int:
            seen.append(ctx.attempt)
            if ctx.attempt == 1:
                await asyncio.sleep(60)
            if ctx.attempt == 2:
                raise ValueError("no")
            return ctx.attempt

        return await step.do("charge", body, max_attempts=2, delay=0)

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: seen == [1])
        crash()
        shifts.wait_for(instance)
    assert (instance.output, seen) == (3, [1, 2, 3])
    assert outcomes(instance, "charge") == ["lost", "errored", "complete"]


def test_a_step_that_kills_its_worker_again_and_again_fails() -> None:
    """Guarantee 5: the losses while it was alone in its worker have a budget of their own, three"""
    seen: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        async def body(ctx: StepContext) -> None:
            seen.append(ctx.attempt)
            await asyncio.sleep(60)

        try:
            await step.do("killer", body)
        except StepError as error:
            return error.type
        return "it lives"

    instance = story.start()
    with shifts.running_shift():
        for number in range(1, 5):
            shifts.wait_until(lambda number=number: len(seen) == number)
            crash()
        shifts.wait_for(instance)
    # Another instance may have caused the first loss, so it does not count as a crash.
    assert (instance.output, seen) == ("WorkerLostError", [1, 2, 3, 4])
    assert outcomes(instance, "killer") == ["lost"] * 4
    assert [one.quarantined for one in attempts(instance, "killer")] == [False, True, True, True]
