"""Restart from a step: what is kept, what runs again, and what a handler sees of it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from engine import RestartError, RollbackContext, StepContext, StepError, WorkflowStep, branch, workflow
from engine.models import Attempt, Event, Instance, Step
from engine.steer import requests
from engine.steer.restart import preview
from tests import shifts
from tests.shifts import until
from tests.stories import run_to_end, running_shift, wait_for, wait_until

pytestmark = pytest.mark.usefixtures("nothing_is_violated")


def origins(instance: Instance) -> dict[str, int]:
    """Return in which generation each step of the present one ran."""
    rows = Step.objects.filter(instance=instance, generation=instance.generation).order_by("seq")
    return {str(row): row.kept_from or row.generation for row in rows}


def test_events_of_waits_that_run_again_go_back_in_their_order() -> None:
    """Guarantee 14: also those of a wait that was kept before; what is buffered stays"""

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        await step.do("begin", str)
        got = [(await step.wait_for_event(name, "e")).payload for name in ("a", "b", "c")]
        await step.do("end", str)
        return got

    instance = story.start()
    for number in range(1, 5):
        instance.send_event("e", number, dedup_key=str(number))
    run_to_end(instance)
    assert instance.output == [1, 2, 3]
    assert preview(instance, "c", kind="event").returned_events == 1
    instance.restart("c", kind="event")
    run_to_end(instance)
    assert instance.output == [1, 2, 3]
    assert origins(instance) == {"begin": 1, "a": 1, "b": 1, "c": 2, "end": 2}
    assert preview(instance, "b", kind="event").returned_events == 2
    instance.restart("b", kind="event")
    run_to_end(instance)
    assert (instance.output, origins(instance)["a"], origins(instance)["b"]) == ([1, 2, 3], 1, 3)
    taken = Event.objects.filter(instance=instance).order_by("key")
    assert list(taken.values_list("consumed_generation", "consumed_by")) == [
        (1, 2),
        (3, 3),
        (3, 4),
        (None, None),
    ]


def test_a_request_that_runs_again_is_asked_again() -> None:
    """Guarantee 14: an answer is for one question; a kept one still says who gave it"""

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        first = await step.request("first", bool, message="?")
        second = await step.request("second", bool, message="?")
        return [first.value, second.value]

    instance = story.start()
    with running_shift():
        for name in ("first", "second"):
            wait_until(lambda n=name: requests.open_requests().filter(instance=instance).count() == 1)
            wait_until(
                lambda n=name: Step.objects.filter(instance=instance, name=n, status="waiting").exists()
            )
            requests.answer(instance, name, True, by="ada")
        wait_for(instance)
        plan = preview(instance, "second", kind="request")
        assert (plan.returned_events, plan.dropped_events) == (0, 0)
        instance.restart("second", kind="request")
        wait_until(lambda: requests.open_requests().filter(instance=instance).exists())
        kept = requests.find(instance, "first")
        answer = requests.answer_to(kept)
        assert answer is not None
        assert (kept.kept_from, answer.sent_by) == (1, "ada")
        requests.answer(instance, "second", False, by="bob")
        wait_for(instance)
    assert instance.output == [True, False]


def test_an_answer_to_an_open_request_is_dropped() -> None:
    """Guarantee 14: nothing waits for it any more"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str)
        await step.request("ask", bool, message="?")

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.pause()
        requests.answer(instance, "ask", True, by="ada")
        instance.send_event("other")
        assert preview(instance, "ask", kind="request").dropped_events == 1
        instance.restart("ask", kind="request")
        wait_until(lambda: requests.open_requests().filter(instance=instance).exists())
        requests.answer(instance, "ask", False, by="bob")
        wait_for(instance)
    given = [requests.answer_to(row) for row in Step.objects.filter(instance=instance, name="ask")]
    assert {one.sent_by: one.state for one in given if one} == {"ada": "dropped", "bob": "consumed"}


def test_the_handler_sees_again_what_the_kept_steps_saw() -> None:
    """Guarantees 14 and 20: random values, the time, and when it started"""
    seen: list[tuple[Any, ...]] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        values = (step.uuid4(), step.random.random(), step.now(), step.started_at)
        await step.do("a", str)
        seen.append((*values, step.now(), step.uuid4()))
        await step.do("b", str)

    def seen_by_run() -> tuple[Any, ...]:
        seen.clear()
        run_to_end(instance)
        (same_on_every_replay,) = set(seen)
        return same_on_every_replay

    instance = story.start()
    first = seen_by_run()
    instance.restart("b")
    assert seen_by_run() == first
    instance.restart()
    anew = seen_by_run()
    assert anew[0] != first[0]
    instance.restart("b")
    assert seen_by_run() == anew


def test_what_is_kept_is_rolled_back_as_what_ran_here() -> None:
    """Guarantees 14, 15 and 21: the replay finds its function, and the generation has its own key"""
    undone: list[tuple[str, str, str]] = []
    fails = True

    def undo(ctx: RollbackContext) -> None:
        undone.append((ctx.name, str(ctx.output), ctx.idempotency_key))

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", lambda: "first a", rollback=undo)
        await step.do("b", lambda: "b", rollback=undo)

        def check() -> None:
            if fails:
                raise ValueError("no")

        await step.do("check", check, max_attempts=1)
        await step.sleep("nap", 0.01)
        await step.do("last", lambda: 1 / 0, max_attempts=1)

    instance = story.start()
    with running_shift():
        wait_for(instance)
        assert [name for name, *_ in undone] == ["b", "a"]
        with pytest.raises(RestartError, match='step do "a"'):
            instance.restart("check")
        assert "rolled back" in preview(instance, "check").refused
        assert preview(instance, "b").refused
        assert preview(instance, "a").refused == ""
        fails = False
        instance.restart("a")
        wait_for(instance)
    assert (instance.status, [name for name, *_ in undone]) == ("errored", ["b", "a", "b", "a"])
    assert len({key for *_, key in undone}) == 4


def test_a_kept_step_is_rolled_back() -> None:
    """Guarantees 14 and 15: with an attempt of the generation that undoes it"""
    undone: list[tuple[str, str]] = []
    keys: list[str] = []
    goes_wrong = threading.Event()

    def undo(ctx: RollbackContext) -> None:
        undone.append((ctx.name, str(ctx.output)))
        keys.append(ctx.idempotency_key)

    @workflow
    async def story(step: WorkflowStep) -> None:
        def reserve(ctx: StepContext) -> str:
            keys.append(ctx.idempotency_key)
            return "a seat"

        await step.do("reserve", reserve, rollback=undo)

        def charge() -> None:
            if goes_wrong.is_set():
                raise ValueError("no")

        await step.do("charge", charge, max_attempts=1)

    instance = shifts.run_to_end(story.start())
    goes_wrong.set()
    instance.restart("charge")
    shifts.run_to_end(instance)
    assert (instance.status, instance.rollback, undone) == ("errored", "complete", [("reserve", "a seat")])
    assert len(set(keys)) == 2
    attempts = Attempt.objects.filter(instance=instance, step_seq=1).order_by("generation")
    assert list(attempts.values_list("generation", "phase", "number")) == [(1, "do", 1), (2, "rollback", 1)]
    assert Step.objects.get(instance=instance, generation=1, seq=1).rollback == ""


def test_all_that_is_beneath_a_kept_step_is_kept() -> None:
    """Guarantee 14: items of a map, steps of a body, branches; and none of it runs or starts again"""
    ran: list[str] = []

    @workflow
    async def child(step: WorkflowStep, params: str) -> str:
        ran.append(params)
        return params

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        async def body() -> str:
            return await step.do("inner", note, "inner")

        def note(what: str, index: int = 0) -> str:
            ran.append(what)
            return what

        found = [
            await step.map("map", ["x", "y"], note),
            await step.do("body", body),
            await step.parallel("both", branch(child, "p"), branch(child, "q")),
            await step.run_workflow("one", child, "r"),
        ]
        await step.do("last", note, "last")
        return found

    instance = run_to_end(story.start())
    output, before = instance.output, sorted(ran)
    ran.clear()
    instance.restart("last")
    run_to_end(instance)
    assert (instance.output, ran, len(before)) == (output, ["last"], 7)
    assert Instance.objects.filter(workflow="child").count() == 3
    was, is_now = (
        [
            (row.seq, row.parent, str(row), row.status, row.output)
            for row in Step.objects.filter(instance=instance, generation=number, name__in=names).order_by(
                "seq"
            )
        ]
        for names in [["map", "body", "inner", "both", "one"]]
        for number in (1, 2)
    )
    assert (was, len(was)) == (is_now, 9)


def test_what_waits_and_failed_before_the_step_is_kept_or_runs_again() -> None:
    """Guarantee 14: a failure that was caught is an outcome; what is open has none"""
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        def broken() -> None:
            ran.append("broken")
            raise ValueError("no")

        nap = step.sleep("nap", "1h")
        try:
            await step.do("broken", broken, max_attempts=1)
        except StepError:
            ran.append("caught")
        await step.do("last", lambda: ran.append("last"))
        await nap
        return "never"

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        ran.clear()
        instance.restart("last")
        wait_for(instance, "waiting")
    assert list(dict.fromkeys(ran)) == ["caught", "last"]
    assert ran.count("last") == 1
    assert origins(instance) == {"broken": 1, "nap": 2, "last": 2}


def test_a_body_that_runs_is_cancelled_and_its_result_refused() -> None:
    """Guarantees 13, 14 and 17"""
    entered, told = threading.Event(), threading.Event()
    first = threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.do("a", str)

        def slow(ctx: StepContext) -> str:
            if first.is_set():
                return "second"
            first.set()
            entered.set()
            ctx.cancelled.wait(60)
            told.set()
            return "first"

        return await step.do("slow", slow)

    instance = story.start()
    with shifts.running_shift():
        assert entered.wait(60)
        fence = instance.refresh().fence
        instance.restart("slow")
        assert instance.fence > fence
        assert told.wait(60)
        shifts.wait_for(instance)
    assert instance.output == "second"
    rows = Step.objects.filter(instance=instance, name="slow").order_by("generation")
    assert list(rows.values_list("generation", "status")) == [(1, "cancelled"), (2, "complete")]
    kept = instance.generations.get()
    assert (kept.status, kept.finished_at is not None) == ("terminated", True)


def test_children_of_open_steps_end_and_new_ones_are_started() -> None:
    """LC-35, guarantees 14 and 16"""
    gate = threading.Event()

    @workflow
    async def child(step: WorkflowStep, params: str) -> str:
        await step.do("grow", until, gate)
        return params

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        spawned = await step.spawn("spawned", child, "spawned")
        await step.do("a", str)
        done = await step.run_workflow("tied", child, "tied")
        await step.wait_for_instance("wait", spawned)
        await step.do("last", str)
        return [done]

    def children(generation: int) -> dict[str, str]:
        rows = Instance.objects.filter(parent_key=instance.key, parent_generation=generation)
        return dict(rows.values_list("params", "status"))

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_for(instance, "waiting")
        shifts.wait_until(lambda: len(children(1)) == 2)
        assert preview(instance).ended_children == 1
        instance.restart("a")
        shifts.wait_until(lambda: children(1)["tied"] == "terminated")
        shifts.wait_until(lambda: "tied" in children(2))
        gate.set()
        shifts.wait_for(instance)
        assert (children(1)["spawned"], children(2)) == ("complete", {"tied": "complete"})
        # Its children are done: their outcomes are read from the record.
        Instance.objects.filter(parent_generation=2).get().delete()
        instance.restart("last")
        shifts.wait_for(instance)
    assert (instance.output, instance.generation, children(3)) == (["tied"], 3, {})


def test_a_child_that_is_restarted_tells_its_parent_only_while_that_waits() -> None:
    """Guarantees 14 and 16"""
    numbers: list[int] = []

    @workflow
    async def child(step: WorkflowStep) -> int:
        await step.wait_for_event("go", timeout=None)
        numbers.append(len(numbers))
        return len(numbers)

    @workflow
    async def story(step: WorkflowStep) -> int:
        return await step.run_workflow("child", child)

    instance = story.start()
    with running_shift():
        wait_until(lambda: Instance.objects.filter(workflow="child").exists())
        one = Instance.objects.get(workflow="child")
        wait_for(one, "waiting")
        one.restart()
        assert one.is_tied
        wait_for(one, "waiting")
        one.send_event("go")
        wait_for(instance)
        wait_for(one)
        one.restart()
        assert not one.is_tied
        one.send_event("go")
        wait_for(one)
    assert (instance.refresh().output, one.output, instance.generation) == (1, 2, 1)


def test_whoever_waits_for_an_instance_waits_for_its_next_generation() -> None:
    gate = threading.Event()

    @workflow
    async def long(step: WorkflowStep) -> str:
        await step.do("work", until, gate)
        return "done"

    @workflow
    async def story(step: WorkflowStep, params: str) -> Any:
        return (await step.wait_for_instance("wait", workflow=long, id=params)).output

    other = long.start(id="long")
    instance = story.start("long")
    with shifts.running_shift():
        shifts.wait_for(instance, "waiting")
        shifts.wait_for(other, "running")
        other.restart()
        instance.restart()
        shifts.wait_for(instance, "waiting")
        gate.set()
        shifts.wait_for(instance)
    assert instance.output == "done"
