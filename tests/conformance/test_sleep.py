"""Sleeps: durable, never early, and free."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine import WorkflowStep, workflow
from tests.records import statuses, step, steps
from tests.stories import run_to_end, running_shift, wait_for, wait_until
from tests.travel import age, skip_wait


@pytest.mark.parametrize(
    ("duration", "length"),
    [
        (30, timedelta(seconds=30)),
        (0.5, timedelta(seconds=0.5)),
        ("1 minute", timedelta(minutes=1)),
        ("26 hours", timedelta(hours=26)),
        ("1s", timedelta(seconds=1)),
        ("1 sec", timedelta(seconds=1)),
        ("1h 30m", timedelta(minutes=90)),
        (timedelta(days=365), timedelta(days=365)),
    ],
)
def test_a_sleep_lasts_what_was_said(duration: Any, length: timedelta) -> None:
    """CF-37 (a number is seconds), KC-10, KC-11: always a durable row, and no compute while it waits"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.sleep("nap", duration)

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
    row = step(instance, "nap")
    assert row.wake_at - row.started_at == length
    assert (instance.waiting_for, instance.wake_at, instance.owner) == ("sleep", row.wake_at, None)


@pytest.mark.parametrize(
    "duration",
    ["soon", "", "10", "1 month", "1 fortnight", "1h-5m", -1, float("nan"), "366 days", True, None],
)
def test_a_duration_that_is_none_is_a_clear_error(duration: Any) -> None:
    """CF-38: it quotes the text, and no step is recorded"""

    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            await step.sleep("nap", duration)
        except ValueError as error:
            return str(error)
        return "slept"

    instance = run_to_end(story.start())
    assert "Give a timedelta, a number of seconds, or a string" in instance.output
    if isinstance(duration, str):
        assert f'"{duration}"' in instance.output
    assert steps(instance) == []


def test_a_sleep_until_the_past_returns_at_once() -> None:
    """CF-40, LC-14, KC-14: and a replay after its end passes without waiting"""

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.sleep_until("long ago", datetime(2001, 1, 1, tzinfo=UTC))
        await step.sleep("zero", 0)
        await step.wait_for_event("go")
        return "done"

    instance = story.start()
    with running_shift():
        wait_until(lambda: statuses(instance).get("go") == "waiting")
        assert statuses(instance) == {"long ago": "complete", "zero": "complete", "go": "waiting"}
        assert wait_for(instance, "waiting").waiting_for == "event"
        instance.send_event("go")
        wait_for(instance)
    assert instance.output == "done"


def test_a_replay_before_the_moment_sleeps_on_until_it() -> None:
    """CF-41, KC-13: one sleep in the history, and never early"""
    replays: list[int] = []
    when = datetime.now(UTC) + timedelta(seconds=2)

    @workflow
    async def story(step: WorkflowStep) -> None:
        replays.append(1)
        await asyncio.gather(step.sleep_until("moment", when), step.wait_for_event("go"))

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.send_event("go")
        wait_for(instance)
    row = step(instance, "moment")
    assert len(replays) >= 3
    assert steps(instance) == [("sleep", "moment", 1, "complete"), ("event", "go", 1, "complete")]
    assert when <= row.finished_at < when + timedelta(seconds=1)
    assert row.wake_is_fixed


NAIVE = datetime.fromisoformat("2030-01-01T00:00:00")


@pytest.mark.parametrize("when", [NAIVE, datetime(9999, 1, 1, tzinfo=UTC), "tomorrow", 1_900_000_000, None])
def test_a_moment_that_is_none_is_a_clear_error(when: Any) -> None:
    """Only aware times, within what every reader can show"""

    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            await step.sleep_until("moment", when)
        except ValueError as error:
            return str(error)
        return "slept"

    instance = run_to_end(story.start())
    assert instance.output.startswith('Argument of step.sleep_until: "when" is ')
    assert steps(instance) == []


def test_a_sleep_is_never_early() -> None:
    """KC-13: the next step starts when it is over, by the database's clock"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        for _ in range(5):
            await step.sleep("nap", 0.02)
            await step.do("after", str)

    instance = run_to_end(story.start())
    for count in range(1, 6):
        nap = step(instance, "nap", count)
        assert nap.finished_at - nap.started_at >= timedelta(seconds=0.02)
        assert step(instance, "after", count).started_at >= nap.finished_at


def test_sleeps_run_beside_each_other_and_beside_steps() -> None:
    """CF-43"""

    @workflow
    async def story(step: WorkflowStep) -> str:
        await asyncio.gather(step.sleep("a", "1h"), step.do("work", str), step.sleep("b", "1h"))
        return "done"

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        assert statuses(instance) == {"a": "waiting", "work": "complete", "b": "waiting"}
        age(instance, hours=1)
        wait_for(instance)
    assert instance.output == "done"


def test_sleeps_and_waits_do_not_count_as_steps() -> None:
    """CF-44: exactly the limit passes, one more fails"""

    @workflow(max_steps=3)
    async def story(step: WorkflowStep, params: int) -> int:
        for _ in range(params):
            await step.sleep("nap", 0)
            await step.progress("on the way")
            await step.do("work", str)
        return params

    assert run_to_end(story.start(3)).output == 3
    failed = run_to_end(story.start(4))
    assert (failed.status, failed.error["type"]) == ("errored", "LimitError")
    assert "The number of steps of an instance is 4; the limit is 3." in failed.error["message"]
    assert [row for row in steps(failed) if row[0] == "do"] == [
        ("do", "work", count, "complete") for count in (1, 2, 3)
    ]


def test_a_sleep_in_a_loop_sleeps_each_time() -> None:
    """HC-04, HC-05: names count; a loop that breaks does not affect later steps"""
    released: list[str] = []

    @workflow
    async def story(step: WorkflowStep, params: list[str]) -> list[str]:
        done = []
        for env in params:
            await step.do(f"deploy:{env}", lambda env=env: released.append(env))
            await step.sleep("cool-down", "10m")
            if await step.do(f"health:{env}", lambda env=env: env) == "b":
                break
            done.append(env)
        return done

    instance = story.start(["a", "b", "c"])
    with running_shift():
        for number in (1, 2):
            wait_until(lambda number=number: ("sleep", "cool-down", number, "waiting") in steps(instance))
            wait_for(instance, "waiting")
            skip_wait(instance)
        wait_for(instance)
    assert (instance.output, released) == (["a"], ["a", "b"])
    assert {"deploy:c", "health:c"}.isdisjoint(statuses(instance))
