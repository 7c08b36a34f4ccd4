"""Nested steps: `step.do` and `step.run` inside the body of an async step (guarantee 8)."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from engine import StepContext, StepError, WorkflowStep, define_step, workflow
from engine.models import Instance, Step
from engine.replay.nesting.body import Nest
from engine.worker.database.journal import Journal
from tests import shifts
from tests.records import attempts, crash, outcomes, statuses, step, tree
from tests.shifts import until, witness
from tests.stories import run_to_end, running_shift, wait_for

pytestmark = pytest.mark.usefixtures("nothing_is_violated")


# Identity and replay


def test_names_count_within_the_step_around_them() -> None:
    """KC-02, KC-08"""
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        async def parent(name: str) -> list[Any]:
            def work(number: int) -> str:
                ran.append(f"{name}{number}")
                return f"{name}{number}"

            return [await step.do("c", work, 1), await step.do("c", work, 2)]

        found = [await step.do("p", parent, "x"), await step.do("q", parent, "y"), await step.do("c", str)]
        await step.sleep("park", 0.01)
        return found

    instance = run_to_end(story.start())
    assert instance.output == [["x1", "x2"], ["y1", "y2"], ""]
    assert ran == ["x1", "x2", "y1", "y2"]
    assert tree(instance) == [
        ("p", "complete"),
        ("p", "c", "complete"),
        ("p", "c #2", "complete"),
        ("q", "complete"),
        ("q", "c", "complete"),
        ("q", "c #2", "complete"),
        ("c", "complete"),
        ("park", "complete"),
    ]
    numbers = Step.objects.filter(instance=instance).order_by("seq").values_list("parent", "delivery")
    assert list(numbers) == [(0, 1), (1, None), (1, None), (0, 2), (4, None), (4, None), (0, 3), (0, 4)]


@pytest.mark.parametrize("delay", [0, 0.3])
def test_a_parent_that_is_retried_does_not_run_finished_children_again(delay: float) -> None:
    """Also if it was parked in between, and continues in another cycle."""
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        async def parent(ctx: StepContext) -> list[Any]:
            nothing = await step.do("nothing", lambda: ran.append("nothing"))
            first = await step.do("first", lambda: ran.append("first") or {"n": 1})
            if ctx.attempt == 1:
                raise ValueError("again")
            return [nothing, first, await step.do("second", lambda: ran.append("second") or 2)]

        return await step.do("parent", parent, delay=delay)

    instance = run_to_end(story.start())
    assert instance.output == [None, {"n": 1}, 2]
    assert ran == ["nothing", "first", "second"]
    assert outcomes(instance, "parent") == ["errored", "complete"]
    assert outcomes(instance, "first") == ["complete"]


def test_the_body_of_a_finished_parent_is_not_entered_by_a_replay() -> None:
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> Any:
        async def parent() -> Any:
            ran.append("parent")
            return await step.do("child", lambda: ran.append("child") or 1)

        value = await step.do("parent", parent)
        await step.sleep("park", 0.01)
        return value

    assert (run_to_end(story.start()).output, ran) == (1, ["parent", "child"])


def test_an_outcome_is_committed_before_the_body_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise what the body does with it would come before its record."""
    execute = Journal._execute

    async def execute_late(journal: Journal, batch: Any) -> Any:
        await asyncio.sleep(0.1)
        return await execute(journal, batch)

    monkeypatch.setattr(Journal, "_execute", execute_late)

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        async def parent() -> list[Any]:
            seen: list[Any] = []
            for number in range(2):
                value = await step.do("child", lambda number=number: number)
                row = await Step.objects.aget(instance__id=step.instance_id, name="child", count=number + 1)
                seen.append([value, row.status, row.output])
            return seen

        return await step.do("parent", parent)

    assert shifts.run_to_end(story.start()).output == [[n, "complete", n] for n in range(2)]


def test_values_have_the_same_type_live_and_recorded() -> None:
    kinds: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        def pair() -> tuple[int, str]:
            return (1, "a")

        async def parent(ctx: StepContext) -> None:
            value = await step.do("pair", pair)
            kinds.append(repr(value))
            if ctx.attempt == 1:
                raise ValueError("again")

        await step.do("parent", parent, delay=0)

    assert run_to_end(story.start()).status == "complete"
    assert kinds == ["(1, 'a')"] * 2


def test_a_new_name_in_the_next_attempt_runs_and_the_old_one_is_kept() -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        async def parent(ctx: StepContext) -> str:
            value = await step.do(f"part {ctx.attempt}", lambda: f"from {ctx.attempt}")
            if ctx.attempt == 1:
                raise ValueError("again")
            return value

        return await step.do("parent", parent, delay=0)

    instance = run_to_end(story.start())
    assert instance.output == "from 2"
    assert statuses(instance) == {"parent": "complete", "part 1": "complete", "part 2": "complete"}


def test_once_gives_a_second_call_in_a_body_the_result_of_the_first() -> None:
    ran: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        async def parent() -> list[int]:
            both = [step.do("child", lambda: ran.append(1) or 7, once=True) for _ in range(2)]
            return [*await asyncio.gather(*both), await step.do("child", lambda: 8, once=True)]

        return await step.do("parent", parent)

    assert (run_to_end(story.start()).output, ran) == ([7, 7, 7], [1])


def test_children_of_children() -> None:
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> int:
        async def inner(ctx: StepContext) -> int:
            value = await step.do("leaf", lambda: ran.append("leaf") or 5)
            ran.append(f"inner {ctx.attempt}")
            if ctx.attempt == 1:
                raise ValueError("again")
            return value

        async def outer() -> int:
            ran.append("outer")
            return await step.do("inner", inner, delay=0) + await step.do("leaf", lambda: 1)

        return await step.do("outer", outer)

    instance = run_to_end(story.start())
    assert (instance.output, ran) == (6, ["outer", "leaf", "inner 1", "inner 2"])
    assert tree(instance) == [
        ("outer", "complete"),
        ("outer", "inner", "complete"),
        ("outer", "inner", "leaf", "complete"),
        ("outer", "leaf", "complete"),
    ]


def test_a_defined_step_runs_in_a_body() -> None:
    @define_step("greet", max_attempts=2)
    async def greet(ctx: StepContext, name: str) -> str:
        return f"hello {name} {ctx.options.max_attempts}"

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        async def parent() -> list[str]:
            @step.do("decorated")
            def decorated(name: str) -> str:
                return name.upper()

            return [await step.run(greet, "you"), await decorated("x")]

        return await step.do("parent", parent)

    assert run_to_end(story.start()).output == ["hello you 2", "X"]


def test_items_of_a_map_have_children() -> None:
    ran: list[str] = []

    @workflow(max_steps=8)
    async def story(step: WorkflowStep) -> list[Any]:
        async def item(name: str, index: int, ctx: StepContext) -> str:
            value = await step.do("child", lambda: ran.append(name) or ctx.idempotency_key)
            if ctx.attempt == 1 and index == 1:
                raise ValueError("again")
            return value

        found = await step.map("each", ["a", "b", "c"], item, delay=0)
        await step.sleep("park", 0.01)
        await step.do("seventh", str)
        await step.do("eighth", str)
        return found

    instance = run_to_end(story.start())
    assert instance.status == "complete"
    assert sorted(ran) == ["a", "b", "c"]
    assert len(set(instance.output)) == 3
    assert sorted(path for path in tree(instance) if len(path) == 4) == [
        ("each", f"each{which}", "child", "complete") for which in ("", " #2", " #3")
    ]


# Failure


def test_an_exhausted_child_is_not_retried_by_its_parent() -> None:
    """KC-07: child twice, parent once (ours)"""
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        def child() -> None:
            ran.append("child")
            raise ValueError("no")

        async def parent() -> None:
            ran.append("parent")
            await step.do("child", child, max_attempts=2, delay=0)

        try:
            await step.do("parent", parent, max_attempts=3, delay=0)
        except StepError as error:
            return [error.step, error.type, error.message, error.details["type"]]
        return []

    instance = run_to_end(story.start())
    assert ran == ["parent", "child", "child"]
    assert instance.output == [
        "parent",
        "StepError",
        'Step "child" failed after 2 attempts: ValueError: no',
        "ValueError",
    ]
    assert (outcomes(instance, "parent"), outcomes(instance, "child")) == (
        ["errored"],
        ["errored", "errored"],
    )


def test_the_body_may_catch_what_a_child_raises_on_every_attempt() -> None:
    """KC-07"""
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        def child() -> None:
            ran.append("child")
            raise KeyError("no")

        async def parent(ctx: StepContext) -> list[str]:
            try:
                await step.do("child", child, max_attempts=1)
            except StepError as error:
                if ctx.attempt == 1:
                    raise ValueError("again") from error
                return [error.step, error.type, error.message]
            return []

        return await step.do("parent", parent, delay=0)

    instance = run_to_end(story.start())
    assert (instance.output, ran) == (["child", "KeyError", "'no'"], ["child"])


def test_a_task_group_with_an_exhausted_child_is_not_retried_either() -> None:
    ran: list[str] = []
    is_there = threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def bad() -> None:
            ran.append("bad")
            await until(is_there)
            raise ValueError("no")

        async def slow() -> None:
            is_there.set()
            await asyncio.sleep(60)

        async def parent() -> None:
            ran.append("parent")
            async with asyncio.TaskGroup() as group:
                group.create_task(step.do("bad", bad, max_attempts=1))
                group.create_task(step.do("slow", slow))

        await step.do("parent", parent, delay=0)

    instance = shifts.run_to_end(story.start())
    assert (instance.status, instance.error["type"]) == ("errored", "ExceptionGroup")
    assert ran == ["parent", "bad"]
    assert statuses(instance) == {"parent": "errored", "bad": "errored", "slow": "cancelled"}


def test_a_failed_gather_leaves_the_others_to_the_next_attempt() -> None:
    ran: list[str] = []
    is_there = threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        async def slow(ctx: StepContext) -> int:
            ran.append(f"slow {ctx.attempt}")
            is_there.set()
            if ctx.attempt == 1:
                await asyncio.sleep(60)
            return 1

        async def parent(ctx: StepContext) -> list[Any]:
            async def check() -> int:
                await until(is_there)
                if ctx.attempt == 1:
                    raise ValueError("not yet")
                return 2

            return list(await asyncio.gather(step.do("slow", slow, max_attempts=1), check()))

        return await step.do("parent", parent, delay=0)

    instance = shifts.run_to_end(story.start())
    assert (instance.output, ran) == ([1, 2], ["slow 1", "slow 2"])
    assert outcomes(instance, "slow") == ["cancelled", "complete"]


def test_what_the_last_attempt_did_not_want_is_cancelled_with_its_end() -> None:
    is_there = threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> str:
        async def slow() -> None:
            is_there.set()
            await asyncio.sleep(60)

        async def parent(ctx: StepContext) -> str:
            if ctx.attempt == 1:
                step.do("slow", slow)
                await until(is_there)
                raise ValueError("again")
            return "done"

        value = await step.do("parent", parent, delay=0)
        await step.wait_for_event("go")
        return value

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: statuses(instance).get("go") == "waiting", what="the wait")
    assert step(instance, "parent").output == "done"
    assert (statuses(instance)["slow"], outcomes(instance, "slow")) == ("cancelled", ["cancelled"])


# Time


def test_a_parents_timeout_covers_its_children_and_the_next_attempt_goes_on_with_them() -> None:
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        async def child(ctx: StepContext) -> str:
            ran.append(f"child {ctx.attempt}")
            if ctx.attempt == 1:
                await asyncio.sleep(60)
            return "done"

        async def parent(ctx: StepContext) -> list[Any]:
            first = await step.do("first", lambda: ran.append("first") or 1)
            return [first, await step.do("child", child, max_attempts=1), ctx.attempt]

        return await step.do("parent", parent, timeout=1, delay=0)

    instance = shifts.run_to_end(story.start())
    assert (instance.output, ran) == ([1, "done", 2], ["first", "child 1", "child 2"])
    assert outcomes(instance, "parent") == ["timed_out", "complete"]
    assert outcomes(instance, "child") == ["cancelled", "complete"]


def test_a_childs_own_timeout_is_its_own() -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        async def child(ctx: StepContext) -> str:
            if ctx.attempt == 1:
                await asyncio.sleep(60)
            return "done"

        async def parent() -> str:
            return await step.do("child", child, timeout=0.05, delay=0)

        return await step.do("parent", parent)

    instance = shifts.run_to_end(story.start())
    assert (instance.output, outcomes(instance, "child")) == ("done", ["timed_out", "complete"])
    assert outcomes(instance, "parent") == ["complete"]


@pytest.mark.parametrize("kind", ["number", "function"])
def test_a_childs_back_off_waits_in_the_worker(kind: str) -> None:
    """And it is never shorter than asked."""

    @workflow
    async def story(step: WorkflowStep) -> None:
        def child(ctx: StepContext) -> None:
            if ctx.attempt == 1:
                raise ValueError("again")

        async def parent() -> None:
            await step.do("child", child, delay=0.3 if kind == "number" else lambda ctx, error: 0.3)

        await step.do("parent", parent)

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: statuses(instance).get("child") == "waiting", what="the back-off")
        assert instance.refresh().status == "running"
        shifts.wait_for(instance)
    first, second = attempts(instance, "child")
    assert (second.started_at - first.finished_at).total_seconds() >= 0.3
    assert len(attempts(instance, "parent")) == 1


def test_a_back_off_that_a_crash_interrupts_ends_when_it_would_have() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        def child(ctx: StepContext) -> None:
            if ctx.attempt == 1:
                raise ValueError("again")

        async def parent() -> None:
            await step.do("child", child, delay=1.5)

        await step.do("parent", parent)

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: statuses(instance).get("child") == "waiting", what="the back-off")
        crash()
        shifts.wait_for(instance)
    first, second = attempts(instance, "child")
    assert 1.5 <= (second.started_at - first.finished_at).total_seconds() < 30
    assert outcomes(instance, "parent") == ["lost", "complete"]


# Ends


@pytest.mark.parametrize("is_async", [True, False])
def test_a_parent_completes_only_when_its_children_have(is_async: bool) -> None:
    """Also those that were never awaited."""
    gate = threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> str:
        async def later() -> int:
            await until(gate)
            return 1

        def now() -> int:
            gate.wait(60)
            return 1

        async def parent() -> str:
            step.do("child", later if is_async else now)
            step.do("failing", int, "x", max_attempts=1)
            return "returned"

        return await step.do("parent", parent)

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: statuses(instance).get("failing") == "errored", what="the failure")
        assert (step(instance, "parent").status, step(instance, "child").status) == ("running", "running")
        gate.set()
        shifts.wait_for(instance)
    assert instance.output == "returned"
    assert step(instance, "child").finished_at <= step(instance, "parent").finished_at


def test_a_timeout_ends_a_parent_that_waits_for_a_child_nobody_awaited() -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        async def parent() -> str:
            step.do("child", asyncio.sleep, 60)
            return "returned"

        try:
            return await step.do("parent", parent, timeout=0.2, max_attempts=1)
        except StepError as error:
            return error.type

    instance = run_to_end(story.start())
    assert instance.output == "StepTimeoutError"
    assert statuses(instance) == {"parent": "errored", "child": "cancelled"}


def test_a_handler_that_gives_a_parent_up_cancels_what_is_inside() -> None:
    """Guarantee 10"""
    is_there = threading.Event()
    late: list[bool] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        async def slow() -> None:
            is_there.set()
            await asyncio.sleep(60)

        async def parent() -> None:
            try:
                await step.do("slow", slow)
            finally:
                late.append(True)

        async def wait_for_it() -> None:
            await until(is_there)

        task = asyncio.ensure_future(step.do("parent", parent))
        await step.do("other", wait_for_it)
        task.cancel()
        await step.do("next", str)
        return "gone on"

    instance = shifts.run_to_end(story.start())
    assert (instance.output, late) == ("gone on", [True])
    assert statuses(instance) == {
        "parent": "cancelled",
        "other": "complete",
        "slow": "cancelled",
        "next": "complete",
    }


def test_when_the_handler_ends_nested_bodies_are_cancelled_and_drained() -> None:
    """Guarantee 10: async ones are cancelled, sync ones run to their end, then the outcome is written."""
    both = threading.Barrier(2, timeout=30)
    ended: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        def sync(ctx: StepContext) -> None:
            both.wait()
            ctx.cancelled.wait(60)
            time.sleep(0.1)
            ended.append("sync")

        async def parent() -> None:
            try:
                await asyncio.gather(step.do("sync", sync), step.do("async", asyncio.sleep, 60))
            except asyncio.CancelledError:
                ended.append("parent")
                raise

        async def fail() -> None:
            await asyncio.to_thread(both.wait)
            raise ValueError("enough")

        await asyncio.gather(step.do("parent", parent), step.do("fail", fail, max_attempts=1))

    instance = shifts.run_to_end(story.start())
    assert (instance.status, instance.error["step"]) == ("errored", "fail")
    assert ended == ["parent", "sync"]
    assert {name: statuses(instance)[name] for name in ("parent", "sync", "async")} == {
        "parent": "cancelled",
        "sync": "cancelled",
        "async": "cancelled",
    }


def test_terminating_ends_nested_bodies() -> None:
    is_there = threading.Event()
    cancelled: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def slow() -> None:
            is_there.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.append("child")
                raise

        async def parent() -> None:
            await step.do("child", slow)

        await step.do("parent", parent)

    instance = story.start()
    with shifts.running_shift():
        assert is_there.wait(60)
        instance.terminate()
        shifts.wait_until(lambda: cancelled == ["child"], what="the end of the child")
    assert statuses(instance) == {"parent": "cancelled", "child": "cancelled"}


# Leaving and coming back


def test_a_pause_lets_a_running_parent_run_its_children_to_the_end() -> None:
    """Guarantee 12: what begins inside a body begins; the handler does not continue."""
    gate = threading.Event()
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        async def first() -> str:
            ran.append("first")
            await until(gate)
            return "first"

        def second(ctx: StepContext) -> str:
            ran.append("second")
            if ctx.attempt == 1:
                raise ValueError("again")
            return "second"

        async def parent() -> list[Any]:
            return [await step.do("first", first), await step.do("second", second, delay=0.1)]

        found = await step.do("parent", parent)
        await step.do("after", lambda: ran.append("after"))
        return found

    instance, look = story.start(), witness()
    with shifts.running_shift():
        shifts.wait_until(lambda: ran == ["first"], what="the first child")
        instance.pause()
        look()
        assert instance.refresh().status == "waiting_for_pause"
        gate.set()
        shifts.wait_for(instance, "paused")
        assert ran == ["first", "second", "second"]
        assert statuses(instance) == {"parent": "complete", "first": "complete", "second": "complete"}
        instance.resume()
        shifts.wait_for(instance)
    assert instance.output == ["first", "second"]
    assert ran == ["first", "second", "second", "after"]


def test_a_pause_that_is_withdrawn_while_children_run_changes_nothing() -> None:
    gate, is_there = threading.Event(), threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        async def first() -> int:
            is_there.set()
            await until(gate)
            return 1

        async def parent() -> list[int]:
            return [await step.do("first", first), await step.do("second", lambda: 2)]

        return await step.do("parent", parent)

    instance = story.start()
    with shifts.running_shift():
        assert is_there.wait(60)
        instance.pause()
        instance.resume()
        gate.set()
        shifts.wait_for(instance)
    assert instance.output == [1, 2]
    assert outcomes(instance, "parent") == ["complete"]


def test_another_worker_goes_on_in_the_middle_of_the_children() -> None:
    ran: list[str] = []
    gate = threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        async def slow(ctx: StepContext) -> int:
            ran.append(f"slow {ctx.attempt}")
            if ctx.attempt == 1:
                await until(gate)
            return 2

        async def parent(ctx: StepContext) -> list[Any]:
            first = await step.do("first", lambda: ran.append("first") or 1)
            return [first, await step.do("slow", slow, max_attempts=1), ctx.attempt]

        return await step.do("parent", parent, max_attempts=1)

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: ran == ["first", "slow 1"], what="the slow child")
        crash()
        shifts.wait_for(instance)
        gate.set()
    assert (instance.output, ran) == ([1, 2, 2], ["first", "slow 1", "slow 2"])
    assert outcomes(instance, "parent") == ["lost", "complete"]
    assert (outcomes(instance, "first"), outcomes(instance, "slow")) == (["complete"], ["lost", "complete"])


def test_a_worker_may_leave_after_every_outcome_inside_a_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt of the bodies finds one more outcome, and nothing runs twice."""
    ran: list[str] = []

    def leave_instead(nest: Nest, operation: Any) -> None:
        nest.body.cycle.writes.committed.append(lambda: nest.body.cycle.exit.release())

    monkeypatch.setattr(Nest, "settled", leave_instead)

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        def work(name: str) -> str:
            ran.append(name)
            return name

        def fail() -> None:
            ran.append("fail")
            raise ValueError("no")

        async def inner() -> list[str]:
            return [await step.do("leaf", work, "x"), await step.do("leaf", work, "y")]

        async def outer(ctx: StepContext) -> list[Any]:
            try:
                await step.do("fail", fail, max_attempts=1)
            except StepError as error:
                caught = error.type
            return [await step.do("a", work, "a"), caught, await step.do("inner", inner), ctx.attempt]

        return [await step.do("outer", outer, max_attempts=1), await step.do("last", work, "last")]

    instance = shifts.run_to_end(story.start())
    assert instance.output == [["a", "ValueError", ["x", "y"], 6], "last"]
    assert ran == ["fail", "a", "x", "y", "last"]
    assert outcomes(instance, "outer") == ["cancelled"] * 5 + ["complete"]


def test_a_recorded_output_that_the_new_code_refuses_pauses_the_instance() -> None:
    """Guarantee 4"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        def number() -> int:
            return 1

        def text() -> list[str]:
            return []

        async def parent(ctx: StepContext) -> None:
            await step.do("child", number if ctx.attempt == 1 else text)
            raise ValueError("again")

        await step.do("parent", parent, delay=0)

    instance = story.start()
    with running_shift():
        wait_for(instance, "paused")
    assert instance.pause_reason["type"] == "NonDeterminismError"
    assert tree(instance) == [("parent", "running"), ("parent", "child", "complete")]
    assert outcomes(instance, "parent") == ["errored", "cancelled"]


def test_a_worker_that_drains_gives_a_parent_back_and_spends_nothing() -> None:
    is_there = threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        async def slow(ctx: StepContext) -> int:
            is_there.set()
            if ctx.attempt == 1:
                await asyncio.sleep(60)
            return 2

        async def parent(ctx: StepContext) -> list[Any]:
            return [await step.do("slow", slow, max_attempts=1), ctx.attempt]

        return await step.do("parent", parent, max_attempts=1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.worker.shift.GRACE_SECONDS", 0.2)
        instance = story.start()
        with shifts.running_shift():
            assert is_there.wait(60)
        assert (instance.refresh().status, tree(instance)) == (
            "queued",
            [("parent", "running"), ("parent", "slow", "running")],
        )
        shifts.run_to_end(instance)
    assert instance.output == [2, 2]
    assert (outcomes(instance, "parent"), outcomes(instance, "slow")) == (["cancelled", "complete"],) * 2


def test_an_isolated_instance_runs_children_beside_the_body_that_waits_for_them() -> None:
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        async def child(name: str) -> str:
            ran.append(f"{name} begins")
            await asyncio.sleep(0.05)
            ran.append(f"{name} ends")
            return name

        async def parent() -> list[Any]:
            return list(await asyncio.gather(step.do("a", child, "a"), step.do("b", child, "b")))

        return await step.do("parent", parent)

    instance = story.start()
    Instance.objects.filter(pk=instance.pk).update(quarantined=True)
    run_to_end(instance)
    assert instance.output == ["a", "b"]
    assert ran == ["a begins", "a ends", "b begins", "b ends"]
    # Progress clears an instance of suspicion. The first child ran alone until it ended.
    alone = {name: attempts(instance, name)[0].quarantined for name in ("parent", "a", "b")}
    assert alone == {"parent": False, "a": True, "b": False}
