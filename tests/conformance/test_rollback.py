"""Rollback: what was done is undone, from the step that started last to the first (guarantee 15)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from engine import (
    NonRetryableError,
    RollbackContext,
    StepConfigError,
    StepContext,
    StepError,
    WorkflowStep,
    define_step,
    workflow,
)
from engine.models import Attempt, Instance
from tests import shifts
from tests.records import attempts, lines, statuses, step
from tests.stories import run_to_end, running_shift, wait_for, wait_until
from tests.travel import age, skip_wait

Undo = Callable[[RollbackContext], None]


class Declined(NonRetryableError):
    def __init__(self, code: int) -> None:
        super().__init__(f"declined: {code}")
        self.code = code


@pytest.fixture
def undone() -> list[str]:
    return []


@pytest.fixture
def undo(undone: list[str]) -> Undo:
    return lambda ctx: undone.append(ctx.name)


def decline() -> None:
    raise Declined(7)


def rollbacks(instance: Instance) -> dict[str, str]:
    """Return the rollback state of every step that has one."""
    return {str(row): row.rollback for row in instance.steps.all() if row.rollback}


def rollback_attempts(instance: Instance, name: str) -> list[str]:
    """Return how each attempt at the rollback of a step ended."""
    rows = Attempt.objects.filter(instance=instance, step_seq=step(instance, name).seq, phase="rollback")
    return list(rows.order_by("number").values_list("status", flat=True))


def test_steps_are_undone_in_reverse_order_with_what_they_did() -> None:
    """LC-23: also the failing one, without an output; each sees the error and the arguments"""
    seen: list[RollbackContext] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", lambda x, y: x + y, 1, 2, rollback=seen.append)
        await step.do("plain", str)
        await step.do("b", lambda: None, rollback=seen.append)
        await step.do("c", decline, rollback=seen.append)

    instance = run_to_end(story.start())
    assert (instance.status, instance.rollback, instance.ends_as) == ("errored", "complete", "")
    assert (instance.error["type"], instance.error["step"]) == ("Declined", "c")
    assert [(ctx.name, ctx.output, ctx.args) for ctx in seen] == [
        ("c", None, ()),
        ("b", None, ()),
        ("a", 3, (1, 2)),
    ]
    assert {(ctx.error.type, ctx.error.message) for ctx in seen} == {("Declined", "declined: 7")}
    assert seen[0].error.details == {"code": 7}
    assert rollbacks(instance) == {"a": "complete", "b": "complete", "c": "complete"}
    assert statuses(instance) == {"a": "complete", "plain": "complete", "b": "complete", "c": "errored"}


def test_parallel_steps_are_undone_by_their_start_and_not_by_their_end(undone: list[str], undo: Undo) -> None:
    """CF-82, LC-26"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        fast_is_done = asyncio.Event()

        async def slow() -> None:
            await fast_is_done.wait()

        async def fast() -> None:
            fast_is_done.set()

        await asyncio.gather(step.do("slow", slow, rollback=undo), step.do("fast", fast, rollback=undo))
        await step.fail("too bad")

    instance = shifts.run_to_end(story.start())
    assert step(instance, "fast").delivery < step(instance, "slow").delivery
    assert undone == ["fast", "slow"]


def test_success_undoes_nothing(undone: list[str], undo: Undo) -> None:
    """CF-83; an error that was caught does not either"""

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.do("a", str, rollback=undo)
        try:
            await step.do("b", decline, rollback=undo)
        except StepError:
            return "caught"
        return "not reached"

    instance = run_to_end(story.start())
    assert (instance.status, instance.rollback, undone) == ("complete", "", [])


def test_a_step_that_failed_and_was_caught_is_undone_after_a_later_error(
    undone: list[str], undo: Undo
) -> None:
    """CF-85"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        try:
            await step.do("caught", decline, rollback=undo)
        except StepError:
            await step.do("other way", str, rollback=undo)
        raise LookupError("later")

    instance = run_to_end(story.start())
    assert (undone, instance.error["type"]) == (["other way", "caught"], "LookupError")


def test_the_first_rollback_that_fails_for_good_stops_the_rest(undone: list[str], undo: Undo) -> None:
    """CF-86, LC-25 as ours: it stops; the error stays the original one"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=undo)
        await step.do("b", str, rollback=lambda ctx: decline())
        await step.do("c", str, rollback=undo)
        raise LookupError("original")

    instance = run_to_end(story.start())
    assert (instance.status, instance.rollback, undone) == ("errored", "failed", ["c"])
    assert instance.error["message"] == "original"
    assert rollbacks(instance) == {"b": "failed", "c": "complete"}
    assert rollback_attempts(instance, "b") == ["errored"]
    attempt = Attempt.objects.get(instance=instance, phase="rollback", status="errored")
    assert (attempt.error["type"], attempt.error["details"]) == ("Declined", {"code": 7})


def test_a_rollback_has_attempts_and_options_of_its_own() -> None:
    seen: list[tuple[int, int]] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        def flaky(ctx: RollbackContext) -> str:
            seen.append((ctx.attempt, ctx.options.max_attempts))
            if ctx.attempt < 3:
                raise ValueError(ctx.attempt)
            return "is dropped"

        options = {"max_attempts": 3, "delay": 0}
        await step.do("a", str, max_attempts=7, rollback=flaky, rollback_options=options)
        raise LookupError

    instance = run_to_end(story.start())
    assert (instance.rollback, seen) == ("complete", [(1, 3), (2, 3), (3, 3)])
    assert rollback_attempts(instance, "a") == ["errored", "errored", "complete"]
    assert outcomes_of_body(instance, "a") == ["complete"]
    assert step(instance, "a").output == ""


def outcomes_of_body(instance: Instance, name: str) -> list[str]:
    made = attempts(instance, name)
    return [attempt.status for attempt in made if attempt.phase == "do"]


@pytest.mark.parametrize(
    ("options", "waits"),
    [
        ({}, [1, 2]),
        ({"delay": "1m", "backoff": "linear"}, [60, 120]),
        ({"delay": lambda ctx, error: 10 * ctx.attempt + len(str(error)), "backoff": "constant"}, [13, 23]),
    ],
)
def test_a_rollback_backs_off_in_the_database(options: dict[str, Any], waits: list[int]) -> None:
    """By the defaults, by its own options, by a delay function; the instance waits for its retry meanwhile"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        def failing(ctx: RollbackContext) -> None:
            raise ValueError("not")

        await step.do("a", str, rollback=failing, rollback_options={"max_attempts": 3, **options})
        raise LookupError

    instance, waited = story.start(), []
    with running_shift():
        for number in (1, 2):
            wait_until(lambda number=number: is_backing_off(instance, number))
            row = step(instance, "a")
            last = Attempt.objects.get(instance=instance, phase="rollback", number=number)
            waited.append(round((row.wake_at - last.finished_at).total_seconds()))
            assert (instance.rollback, instance.ends_as) == ("running", "errored")
            assert (instance.wake_at, instance.error["type"]) == (row.wake_at, "LookupError")
            skip_wait(instance)
        wait_for(instance)
    assert (waited, instance.rollback) == (waits, "failed")


def is_backing_off(instance: Instance, attempts: int) -> bool:
    # Before the status, which may be that of the wait before.
    made = Attempt.objects.filter(instance=instance, phase="rollback").count()
    instance.refresh()
    return (instance.status, instance.waiting_for, made) == ("waiting", "retry", attempts)


def test_a_delay_function_that_fails_ends_the_attempts() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        def failing(ctx: RollbackContext) -> None:
            raise ValueError("not")

        await step.do("a", str, rollback=failing, rollback_options={"delay": lambda ctx, error: 1 / 0})
        raise LookupError

    instance = run_to_end(story.start())
    assert (instance.rollback, rollback_attempts(instance, "a")) == ("failed", ["errored", "errored"])
    last = Attempt.objects.filter(instance=instance, phase="rollback").latest("number")
    assert "division by zero" in last.error["message"]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_rollback_has_a_timeout_of_its_own(is_async: bool) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        async def slow(ctx: RollbackContext) -> None:
            await asyncio.sleep(60)

        def blocking(ctx: RollbackContext) -> None:
            ctx.cancelled.wait(60)

        options = {"timeout": 0.05, "max_attempts": 2, "delay": 0}
        await step.do("a", str, rollback=slow if is_async else blocking, rollback_options=options)
        raise LookupError

    instance = shifts.run_to_end(story.start())
    assert rollback_attempts(instance, "a") == ["timed_out", "timed_out"]
    assert (instance.rollback, instance.error["type"]) == ("failed", "LookupError")


def test_keys_of_a_rollback_are_its_own_and_the_same_on_every_attempt() -> None:
    """Guarantee 21"""
    keys: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        def flaky(ctx: RollbackContext) -> None:
            keys.append(ctx.idempotency_key)
            if ctx.attempt == 1:
                raise ValueError

        def body(ctx: StepContext) -> None:
            keys.append(ctx.idempotency_key)

        await step.do("a", body, rollback=flaky, rollback_options={"delay": 0})
        raise LookupError

    run_to_end(story.start())
    body, first, second = keys
    assert body != first == second


def test_a_rollback_writes_to_the_log() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=lambda ctx: ctx.log.info("undone", name=ctx.name))
        step.log.info("failing")
        raise LookupError

    assert lines(run_to_end(story.start())) == ["failing", "undone"]


@pytest.mark.parametrize(
    ("how", "status", "names"),
    [("fail", "errored", ["a"]), ("abort", "terminated", []), ("raise", "errored", ["a"])],
)
def test_fail_rolls_back_and_abort_does_not(
    how: str, status: str, names: list[str], undone: list[str], undo: Undo
) -> None:
    """Section 3"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=undo)
        if how == "raise":
            raise LookupError("so it is")
        await getattr(step, how)("so it is")

    instance = run_to_end(story.start())
    assert (instance.status, undone) == (status, names)
    assert instance.rollback == ("complete" if names else "")
    assert instance.error["message"] == "so it is"


def test_a_swallowed_fail_rolls_back_all_the_same(undone: list[str], undo: Undo) -> None:
    """KC-20"""

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.do("a", str, rollback=undo)
        try:
            await step.fail("no stock")
        except BaseException:  # noqa: BLE001 - what the case is about
            return "completed"

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["message"], undone) == ("errored", "no stock", ["a"])


def test_a_value_that_cannot_be_stored_fails_the_step_at_once_and_rolls_back(
    undone: list[str], undo: Undo
) -> None:
    """LC-11 as ours: an uncaught error like any other, so it and the steps before it are undone"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=undo)
        await step.do("b", lambda: print, rollback=undo)

    instance = run_to_end(story.start())
    assert (instance.error["type"], undone) == ("InvalidValueError", ["b", "a"])
    assert outcomes_of_body(instance, "b") == ["errored"]


def test_open_branches_let_go_before_anything_is_undone(undone: list[str]) -> None:
    """Guarantees 10 and 15: async bodies are cancelled, sync ones are told and awaited; both are undone"""
    both = threading.Barrier(3, timeout=10)

    @workflow
    async def story(step: WorkflowStep) -> None:
        def undo(ctx: RollbackContext) -> None:
            undone.append(f"undo {ctx.name} {ctx.output}")

        async def awaiting() -> None:
            try:  # from the start: it may be cancelled before it knows of the others
                await asyncio.to_thread(both.wait)
                await asyncio.sleep(60)
            finally:
                undone.append("awaiting let go")

        def blocking(ctx: StepContext) -> str:
            both.wait()
            assert ctx.cancelled.wait(60)
            undone.append("blocking let go")
            return "too late"

        def failing() -> None:
            both.wait()
            decline()

        await asyncio.gather(
            step.do("failing", failing, rollback=undo),
            step.do("awaiting", awaiting, rollback=undo),
            step.do("blocking", blocking, rollback=undo),
            step.do("plain", asyncio.sleep, 60),
            step.sleep("nap", "1h"),
        )

    instance = shifts.run_to_end(story.start())
    assert sorted(undone[:2]) == ["awaiting let go", "blocking let go"]
    assert undone[2:] == ["undo blocking None", "undo awaiting None", "undo failing None"]
    assert set(statuses(instance).values()) == {"cancelled", "errored"}
    assert outcomes_of_body(instance, "blocking") == ["cancelled"]


def test_what_never_began_is_not_undone(undone: list[str], undo: Undo) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=undo)
        step.do("never", str, rollback=undo)
        raise LookupError

    instance = run_to_end(story.start())
    assert (undone, statuses(instance)) == (["a"], {"a": "complete", "never": "cancelled"})


def test_a_workflow_past_its_deadline_is_rolled_back_all_the_same() -> None:
    """Guarantee 7; also while a rollback backs off"""
    seen: list[int] = []

    @workflow(timeout="1h")
    async def story(step: WorkflowStep) -> None:
        def flaky(ctx: RollbackContext) -> None:
            seen.append(ctx.attempt)
            if ctx.attempt == 1:
                raise ValueError

        await step.do("a", str, rollback=flaky, rollback_options={"delay": 0.01})
        await step.listen("nothing")

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        age(instance, hours=2)
        wait_for(instance)
    assert (instance.error["type"], instance.rollback, seen) == ("WorkflowTimeoutError", "complete", [1, 2])


def test_a_handler_that_is_stuck_is_rolled_back(undone: list[str], undo: Undo) -> None:
    """Guarantee 7: handler_timeout"""

    @workflow(handler_timeout=0.05)
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=undo)
        time.sleep(0.1)
        await step.listen("nothing")

    instance = shifts.run_to_end(story.start())
    assert (instance.error["type"], instance.rollback, undone) == ("WorkflowTimeoutError", "complete", ["a"])


def test_async_functions_and_callables_undo_too(undone: list[str]) -> None:
    class Undo:
        async def __call__(self, rollback: RollbackContext) -> None:
            await asyncio.sleep(0)
            undone.append(f"callable {rollback.name}")

    async def coroutine(anything: RollbackContext) -> None:
        undone.append(f"coroutine {anything.name}")

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=Undo())
        await step.do("b", str, rollback=coroutine)
        await step.do("c", str, rollback=lambda ctx: coroutine(ctx))
        raise LookupError

    run_to_end(story.start())
    assert undone == ["coroutine c", "coroutine b", "callable a"]


def test_functions_that_cannot_be_hashed_are_options_too(undone: list[str]) -> None:
    """A dataclass with `__call__`, say"""

    @dataclass
    class Undo:
        into: list[str]

        def __call__(self, rollback: RollbackContext) -> None:
            self.into.append(rollback.name)

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=Undo(undone))
        raise LookupError("original")

    instance = run_to_end(story.start())
    assert (instance.error["message"], instance.rollback, undone) == ("original", "complete", ["a"])


def test_the_output_comes_back_in_the_type_of_the_step(undone: list[str]) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        def pair() -> tuple[int, ...]:
            return (1, 2)

        await step.do("a", pair, rollback=lambda ctx: undone.append(repr(ctx.output)))
        raise LookupError

    run_to_end(story.start())
    assert undone == ["(1, 2)"]


def test_options_without_a_rollback_are_a_mistake() -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            await step.do("a", str, rollback_options={"max_attempts": 2})
        except StepConfigError as error:
            return str(error)
        return "taken"

    assert "rollback=fn" in run_to_end(story.start()).output


def test_items_of_a_map_are_undone_one_by_one() -> None:
    """Section 3: the options apply to each item, also after a restart of the worker"""
    undone: list[tuple[str, int, object]] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        def undo(ctx: RollbackContext) -> None:
            undone.append((ctx.name, ctx.count, ctx.output))

        await step.do("before", str, rollback=undo)
        await step.map("work", "abc", lambda item, index: item * 2, concurrency=1, rollback=undo)
        await step.listen("more")
        raise LookupError

    instance = story.start()
    with shifts.running_shift(name="first"):
        shifts.wait_for(instance, "waiting")
    instance.send_event("more")
    shifts.run_to_end(instance)
    assert undone == [("work", 3, "cc"), ("work", 2, "bb"), ("work", 1, "aa"), ("before", 1, "")]
    assert instance.rollback == "complete"


@define_step(max_attempts=1)
def reserve(sku: str, quantity: int = 1) -> str:
    return f"{quantity} {sku}"


released: list[tuple[object, ...]] = []


@reserve.rollback(max_attempts=2, delay=0)
def release(ctx: RollbackContext) -> None:
    released.append((ctx.output, ctx.args, ctx.kwargs, ctx.options.max_attempts, ctx.attempt))
    if ctx.attempt == 1:
        raise ValueError("not yet")


def test_a_reusable_step_brings_its_rollback_along() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.run(reserve, "tea", quantity=2)
        raise LookupError

    released.clear()
    instance = run_to_end(story.start())
    assert [one[0] for one in released] == ["2 tea", "2 tea"]
    assert [one[3:] for one in released] == [(2, 1), (2, 2)]
    assert instance.rollback == "complete"
