"""Restart: a new generation of the same instance, from the start or from one of its steps."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from engine import (
    StepContext,
    StepNotFoundError,
    WorkflowStep,
    workflow,
)
from engine.models import Attempt, Audit, Event, Instance, Step
from engine.steer.restart import preview
from tests import shifts
from tests.stories import run_to_end, running_shift, wait_for, wait_until

pytestmark = pytest.mark.usefixtures("nothing_is_violated")


def taken(instance: Instance, generation: int) -> list[tuple[str, str, int | None]]:
    """Return name, status and origin of the steps of a generation, by start."""
    rows = Step.objects.filter(instance=instance, generation=generation, parent=0).order_by("seq")
    return [(str(row), row.status, row.kept_from) for row in rows]


def everything(instance: Instance) -> list[Any]:
    """Return everything recorded about an instance, for comparison."""
    parts = (Instance.objects.filter(key=instance.key), instance.steps.all(), instance.events.all())
    return [list(part.values()) for part in parts]


def test_a_failed_step_has_all_its_attempts_again() -> None:
    """CF-32, guarantees 14 and 21: and another idempotency key"""
    seen: list[tuple[int, str]] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        def charge(ctx: StepContext) -> str:
            seen.append((ctx.attempt, ctx.idempotency_key))
            if len(seen) < 4:
                raise ValueError("declined")
            return "charged"

        return await step.do("charge", charge, max_attempts=3, delay=0)

    instance = run_to_end(story.start(tags=["a"]))
    assert instance.status == "errored"
    created_at, first_error = instance.created_at, instance.error
    assert instance.restart(by="ada", reason="the bank is back").status == "queued"
    assert (instance.generation, instance.error, instance.started_at) == (2, None, None)
    run_to_end(instance)
    assert (instance.status, instance.output, instance.created_at, instance.tags) == (
        "complete",
        "charged",
        created_at,
        ["a"],
    )
    assert [attempt for attempt, _ in seen] == [1, 2, 3, 1]
    assert len({key for _, key in seen[:3]}) == 1
    assert seen[3][1] != seen[0][1]
    (kept,) = instance.generations.all()
    assert (kept.number, kept.status, kept.error) == (1, "errored", first_error)
    assert taken(instance, 1) == [("charge", "errored", None)]
    trail = Audit.objects.get(verb="restart")
    assert (trail.actor, trail.reason, trail.before, trail.after) == (
        "ada",
        "the bank is back",
        "errored",
        "queued",
    )
    assert trail.data == {"generation": 2, "from_step": None, "kept": 0}


def test_buffered_events_and_timers_are_dropped() -> None:
    """CF-70, guarantee 14"""

    @workflow
    async def story(step: WorkflowStep) -> str:
        first = asyncio.ensure_future(step.wait_for_event("go", timeout="1h"))
        await asyncio.wait(
            [first, asyncio.ensure_future(step.sleep("nap", "1h"))], return_when="FIRST_COMPLETED"
        )
        return str(first.result().payload)

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.send_event("other", 1, dedup_key="k")
        assert preview(instance).dropped_events == 1
        instance.restart()
        wait_for(instance, "waiting")
        assert taken(instance, 1) == [("go", "cancelled", None), ("nap", "cancelled", None)]
        instance.send_event("other", 2, dedup_key="k")
        instance.send_event("go", "now")
        wait_for(instance)
    assert instance.output == "now"
    rows = list(
        Event.objects.filter(instance=instance).order_by("key").values_list("type", "state", "payload")
    )
    assert rows == [("other", "dropped", 1), ("other", "buffered", 2), ("go", "consumed", "now")]


def test_what_an_earlier_generation_has_taken_may_be_sent_again() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[object]:
        return [(await step.wait_for_event(name, timeout="1h")).payload for name in ("paid", "packed")]

    instance = story.start()
    with running_shift():
        first = instance.send_event("paid", 1, dedup_key="transfer-77")
        wait_until(lambda: Event.objects.get(key=first.key).state == "consumed")
        instance.restart(from_step="packed", kind="event")
        assert instance.send_event("paid", 1, dedup_key="transfer-77") == first  # kept
        instance.restart()
        assert instance.send_event("paid", 1, dedup_key="transfer-77") != first
        instance.send_event("packed", 2)
        wait_for(instance)
    assert instance.output == [1, 2]


def test_it_goes_on_from_one_of_several_steps_of_a_name() -> None:
    """CF-71, LC-43"""
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        def turn(number: int) -> int:
            ran.append(f"loop {number}")
            return len(ran)

        numbers = [await step.do("loop", turn, number) for number in (1, 2, 3)]
        await step.do("after", lambda: ran.append("after"))
        return numbers

    instance = run_to_end(story.start())
    ran.clear()
    plan = preview(instance, "loop", 2)
    assert [str(one) for one in plan.keeps] == ['do "loop"']
    assert [str(one) for one in plan.runs_again] == ['do "loop" #2', 'do "loop" #3', 'do "after"']
    instance.restart("loop", 2)
    run_to_end(instance)
    assert ran == ["loop 2", "loop 3", "after"]
    assert instance.output == [1, 1, 2]
    assert taken(instance, 2) == [
        ("loop", "complete", 1),
        ("loop #2", "complete", None),
        ("loop #3", "complete", None),
        ("after", "complete", None),
    ]
    assert Attempt.objects.filter(instance=instance, generation=2, step_seq=1).count() == 0
    assert Audit.objects.get(verb="restart").data == {
        "generation": 2,
        "from_step": "loop",
        "count": 2,
        "kind": "do",
        "kept": 1,
    }


@pytest.mark.parametrize(
    "target", [("lop", 1, "do"), ("loop", 2, "do"), ("loop", 1, "sleep"), ("inner", 1, "do")]
)
def test_an_unknown_step_is_refused(target: tuple[str, int, str]) -> None:
    """CF-73, LC-43, guarantee 14: nothing is changed, and the error lists the steps"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def body() -> None:
            await step.do("inner", str)

        await step.do("loop", body)

    instance = run_to_end(story.start())
    before = everything(instance)
    with pytest.raises(StepNotFoundError, match='do "loop"'):
        instance.restart(*target)
    with pytest.raises(StepNotFoundError):
        preview(instance, *target)
    assert (everything(instance), Audit.objects.count()) == (before, 0)


def test_a_sibling_that_started_before_and_ended_later_is_kept() -> None:
    """CF-74: the branch that was restarted runs alone"""
    ran: list[str] = []
    gate = threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        async def slow() -> str:
            while not gate.is_set():
                await asyncio.sleep(0.005)
            ran.append("slow")
            return "slow"

        def quick() -> str:
            ran.append("quick")
            gate.set()
            return f"quick {len(ran)}"

        return list(await asyncio.gather(step.do("slow", slow), step.do("quick", quick)))

    instance = shifts.run_to_end(story.start())
    assert (instance.output, ran) == (["slow", "quick 1"], ["quick", "slow"])
    instance.restart("quick")
    shifts.run_to_end(instance)
    assert (instance.output, ran) == (["slow", "quick 3"], ["quick", "slow", "quick"])
    assert taken(instance, 2) == [("slow", "complete", 1), ("quick", "complete", None)]
