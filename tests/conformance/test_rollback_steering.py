"""Rollbacks that are asked for, paused, interrupted by crashes and drains, cut off, and retried."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from engine import InstanceFinishedError, RollbackContext, RollbackNotFailedError, WorkflowStep, workflow
from engine.models import Attempt, Audit, Instance
from tests import shifts
from tests.conformance.test_rollback import decline, rollback_attempts, rollbacks
from tests.records import crash, outcomes, statuses, step
from tests.stories import run_to_end, running_shift, wait_for
from tests.travel import skip_wait
from tests.violations import violations

Undo = Callable[[RollbackContext], None]


class Gate:
    """A body, or a rollback, that says when it runs, and runs until it is released."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.let_out = threading.Event()
        self.seen: list[RollbackContext] = []

    def __call__(self, ctx: RollbackContext) -> str:
        self.seen.append(ctx)
        self.entered.release()
        assert self.let_out.wait(60)
        return "out"

    def wait(self) -> None:
        assert self.entered.acquire(timeout=10)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def undone() -> list[str]:
    return []


@pytest.fixture
def undo(undone: list[str]) -> Undo:
    return lambda ctx: undone.append(ctx.name)


@pytest.fixture(autouse=True)
def _verified() -> object:
    """After each case, no invariant is violated."""
    yield
    assert violations() == []


# Terminate


def test_terminating_with_rollback_undoes_first_while_a_body_runs(undone: list[str], undo: Undo) -> None:
    """Guarantee 13: the body is told, its result is refused, and then it is undone"""
    entered = threading.Event()
    errors: list[tuple[str, object]] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        def slow(ctx: RollbackContext) -> str:
            entered.set()
            assert ctx.cancelled.wait(60)
            undone.append("let go")
            return "late"

        def told(ctx: RollbackContext) -> None:
            undone.append(ctx.name)
            errors.append((ctx.error.type, ctx.output))

        await step.do("a", lambda: 1, rollback=told)
        await step.do("slow", slow, rollback=told)
        await step.do("never", str, rollback=told)

    instance = story.start()
    with shifts.running_shift():
        assert entered.wait(60)
        instance.terminate(rollback=True, by="ada", reason="wrong order")
        assert (instance.status, instance.rollback, instance.ends_as) == ("running", "running", "terminated")
        shifts.wait_for(instance)
    assert (instance.status, instance.rollback, instance.error) == ("terminated", "complete", None)
    assert (undone, errors) == (["let go", "slow", "a"], [("Terminated", None), ("Terminated", 1)])
    assert (statuses(instance)["slow"], outcomes(instance, "slow")[0]) == ("cancelled", "cancelled")
    trail = Audit.objects.get()
    assert (trail.verb, trail.actor, trail.reason, trail.data) == (
        "terminate",
        "ada",
        "wrong order",
        {"rollback": True},
    )


async def _sleeping(step: WorkflowStep) -> None:
    await step.sleep("rest", "1h")


async def _waiting(step: WorkflowStep) -> None:
    await step.listen("rest")


async def _retrying(step: WorkflowStep) -> None:
    await step.do("rest", decline_for_now, delay="1h")


def decline_for_now() -> None:
    raise ValueError("not now")


@pytest.mark.parametrize("rest", [_sleeping, _waiting, _retrying])
@pytest.mark.parametrize("is_paused", [False, True])
def test_terminating_with_rollback_wakes_what_is_parked_or_paused(
    rest: Callable[[WorkflowStep], object], is_paused: bool, undone: list[str], undo: Undo
) -> None:
    """CF-88: and by another worker, after a restart of everything: a replay finds the functions"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=undo)
        await asyncio.gather(rest(step), step.do("b", str, rollback=undo))

    instance = story.start()
    with shifts.running_shift(name="first"):
        shifts.wait_until(lambda: statuses(instance).get("b") == "complete")
        shifts.wait_for(instance, "waiting")
    if is_paused:
        instance.pause()
    instance.terminate(rollback=True)
    assert (instance.status, instance.rollback, instance.ends_as) == ("queued", "running", "terminated")
    assert (instance.waiting_for, instance.paused_at, undone) == ("", None, [])
    with shifts.running_shift(name="second"):
        shifts.wait_for(instance)
    assert (instance.status, instance.rollback, undone) == ("terminated", "complete", ["b", "a"])
    assert statuses(instance) == {"a": "complete", "b": "complete", "rest": "cancelled"}


def test_terminating_with_rollback_what_is_queued_with_steps_begun(undone: list[str], undo: Undo) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=undo)
        await step.sleep("nap", "1h")
        await step.do("never", str, rollback=undo)

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_for(instance, "waiting")
    instance.pause()
    instance.resume()
    assert instance.terminate(rollback=True).status == "queued"
    shifts.run_to_end(instance)
    assert (instance.status, undone) == ("terminated", ["a"])


def test_terminating_with_rollback_what_waits_for_its_pause(
    undone: list[str], undo: Undo, gate: Gate
) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=undo)
        await step.do("slow", gate, rollback=undo)

    instance = story.start()
    with shifts.running_shift():
        gate.wait()
        assert instance.pause().status == "waiting_for_pause"
        assert instance.terminate(rollback=True).status == "running"
        gate.let_out.set()
        shifts.wait_for(instance)
    assert (instance.status, instance.rollback, undone) == ("terminated", "complete", ["slow", "a"])


@pytest.mark.parametrize("status", ["queued", "waiting", "paused"])
def test_without_anything_to_undo_it_just_ends(status: str) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str)
        await step.sleep("nap", "1h")

    instance = story.start()
    if status != "queued":
        with shifts.running_shift():
            shifts.wait_for(instance, "waiting")
    if status == "paused":
        instance.pause()
    instance.terminate(rollback=True)
    assert (instance.status, instance.rollback, instance.ends_as) == ("terminated", "", "")


def test_a_step_that_was_begun_and_never_ended_is_found_again(undone: list[str], undo: Undo) -> None:
    """CF-88: also of a started, unfinished step, whose worker is gone"""
    entered = threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def stuck() -> None:
            entered.set()
            await asyncio.sleep(60)

        await step.do("a", str, rollback=undo)
        await step.do("stuck", stuck, rollback=undo)

    instance = story.start()
    with shifts.running_shift(name="first"):
        assert entered.wait(60)
        crash("first")
        instance.terminate(rollback=True)
        shifts.wait_for(instance)
    assert (instance.status, instance.rollback, undone) == ("terminated", "complete", ["stuck", "a"])


def test_an_end_that_is_on_its_way_gives_way_to_what_was_promised(undone: list[str], undo: Undo) -> None:
    """Terminate races with the end of the handler: either it ended before, or it is rolled back"""

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.do("a", str, rollback=undo)
        await step.do("b", str, rollback=undo)
        return "done"

    endings = set()
    with shifts.running_shift():
        for turn in range(20):
            undone.clear()
            instance = story.start()
            shifts.wait_until(lambda count=turn % 3, of=instance: of.steps.count() >= count)
            try:
                instance.terminate(rollback=True)
            except InstanceFinishedError:
                endings.add(instance.refresh().status)
                continue
            shifts.wait_for(instance)
            endings.add(instance.status)
            begun = [row.name for row in instance.steps.order_by("-seq") if row.attempts]
            assert (instance.status, instance.output, undone) == ("terminated", None, begun)
    assert "terminated" in endings


def test_an_end_that_comes_after_the_promise_does_not_count(
    undone: list[str], undo: Undo, gate: Gate
) -> None:
    """The handler returns while a terminate with rollback holds the row"""
    returned = threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.do("a", str, rollback=undo)
        await step.do("b", gate, rollback=undo)
        returned.set()
        return "done"

    instance = story.start()
    with shifts.running_shift():
        gate.wait()
        with transaction.atomic():
            assert instance.terminate(rollback=True).status == "running"
            gate.let_out.set()
            returned.wait(0.5)  # never, where a worker forgets what it has not written
        shifts.wait_for(instance)
    assert (instance.status, instance.output, instance.rollback) == ("terminated", None, "complete")
    assert undone == ["b", "a"]


def test_a_plain_terminate_cuts_the_rollbacks_off(undone: list[str], undo: Undo, gate: Gate) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=undo)
        await step.do("b", str, rollback=gate)
        raise LookupError("original")

    instance = story.start()
    with shifts.running_shift():
        gate.wait()
        instance.terminate()
        assert (instance.status, instance.rollback, instance.ends_as) == ("terminated", "failed", "")
        assert instance.error["message"] == "original"
        assert gate.seen[0].cancelled.wait(60)
        gate.let_out.set()
    assert (rollbacks(instance), rollback_attempts(instance, "b"), undone) == (
        {"b": "failed"},
        ["cancelled"],
        [],
    )
    instance.retry_rollback()
    shifts.run_to_end(instance)
    assert (instance.status, instance.rollback, undone) == ("terminated", "complete", ["a"])
    assert rollback_attempts(instance, "b") == ["cancelled", "complete"]


def test_what_had_failed_before_it_was_cut_off_keeps_its_error_through_a_retry_and_a_pause(
    undone: list[str], undo: Undo, gate: Gate
) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=undo)
        await step.do("b", str, rollback=gate)
        raise LookupError("original")

    instance = story.start()
    with shifts.running_shift():
        gate.wait()
        instance.terminate()
        gate.let_out.set()
    instance.retry_rollback()
    instance.pause()
    instance.resume()
    shifts.run_to_end(instance)
    assert (instance.status, instance.rollback, undone) == ("terminated", "complete", ["a"])
    assert (instance.error or {}).get("message") == "original"


def test_terminating_with_rollback_what_is_rolled_back_already_changes_nothing(gate: Gate) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=gate)
        raise LookupError

    instance = story.start()
    with shifts.running_shift():
        gate.wait()
        instance.terminate(rollback=True)
        assert (instance.status, instance.ends_as) == ("running", "errored")
        gate.let_out.set()
        shifts.wait_for(instance)
    assert (instance.status, instance.rollback) == ("errored", "complete")
    with pytest.raises(InstanceFinishedError):
        instance.terminate(rollback=True)


def test_children_end_with_a_parent_that_is_rolled_back(undone: list[str], undo: Undo) -> None:
    """Guarantee 13"""

    @workflow
    async def child(step: WorkflowStep) -> None:
        await step.listen("never")

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=undo)
        await step.run_workflow("child", child)

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: Instance.objects.filter(workflow="child", status="waiting").exists())
        shifts.wait_for(instance, "waiting")
        instance.terminate(rollback=True)
        shifts.wait_for(instance)
        shifts.wait_for(Instance.objects.get(workflow="child"), "terminated")
    assert (instance.status, instance.rollback, undone) == ("terminated", "complete", ["a"])


# Pause


def test_a_pause_works_between_two_rollbacks(undone: list[str], undo: Undo, gate: Gate) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=undo)
        await step.do("b", str, rollback=gate)
        raise LookupError("original")

    instance = story.start()
    with shifts.running_shift():
        gate.wait()
        assert instance.pause().status == "waiting_for_pause"
        gate.let_out.set()
        shifts.wait_for(instance, "paused")
        assert (instance.rollback, instance.ends_as, undone) == ("running", "errored", [])
        assert (rollbacks(instance)["b"], instance.error["message"]) == ("complete", "original")
        instance.resume()
        shifts.wait_for(instance)
    assert (instance.rollback, instance.error["message"], undone) == ("complete", "original", ["a"])
    assert (len(gate.seen), rollback_attempts(instance, "b")) == (1, ["complete"])


def test_a_pause_that_is_withdrawn_while_a_rollback_runs_is_none(
    undone: list[str], undo: Undo, gate: Gate
) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=undo)
        await step.do("b", str, rollback=gate)
        raise LookupError

    instance = story.start()
    with shifts.running_shift():
        gate.wait()
        instance.pause()
        assert instance.resume().status == "running"
        gate.let_out.set()
        shifts.wait_for(instance)
    assert (instance.rollback, undone) == ("complete", ["a"])


def test_a_back_off_of_a_rollback_is_shifted_by_a_pause(undone: list[str]) -> None:
    """Guarantee 12"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        def flaky(ctx: RollbackContext) -> None:
            undone.append(f"{ctx.attempt}")
            if ctx.attempt == 1:
                raise ValueError

        await step.do("a", str, rollback=flaky, rollback_options={"delay": "1h"})
        raise LookupError

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        before = step(instance, "a").wake_at
        assert instance.pause().status == "paused"
        instance.resume()
        wait_for(instance, "waiting")
        after = step(instance, "a").wake_at
        assert before < after == instance.wake_at
        skip_wait(instance)
        wait_for(instance)
    assert (instance.rollback, undone) == ("complete", ["1", "2"])


# Crashes and drains


def test_a_crash_amid_a_rollback_repeats_that_one_and_no_other(undone: list[str], undo: Undo) -> None:
    """Guarantee 15: each runs to its end once; the attempt that was cut off is recorded as lost"""
    entered = threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def long(ctx: RollbackContext) -> None:
            undone.append(f"b {ctx.attempt}")
            entered.set()
            if ctx.attempt == 1:
                await asyncio.sleep(60)

        await step.do("a", str, rollback=undo)
        await step.do("b", str, rollback=long, rollback_options={"max_attempts": 1})
        await step.do("c", str, rollback=undo)
        raise LookupError("original")

    instance = story.start()
    with shifts.running_shift(name="first"):
        assert entered.wait(60)
        crash("first")
        shifts.wait_for(instance)
    assert undone == ["c", "b 1", "b 2", "a"]
    assert (instance.rollback, instance.error["message"]) == ("complete", "original")
    assert rollback_attempts(instance, "b") == ["lost", "complete"]
    assert rollback_attempts(instance, "c") == ["complete"]


def test_a_rollback_that_kills_its_worker_again_and_again_has_failed(undone: list[str], undo: Undo) -> None:
    """Guarantee 5, for rollbacks: three losses alone"""
    entered = threading.Semaphore(0)

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def long(ctx: RollbackContext) -> None:
            entered.release()
            await asyncio.sleep(60)

        await step.do("a", str, rollback=undo)
        await step.do("b", str, rollback=long)
        raise LookupError

    instance = story.start()
    with shifts.running_shift(name="first"):
        for _ in range(3):
            assert entered.acquire(timeout=10)
            Attempt.objects.filter(instance=instance, phase="rollback", status="running").update(
                quarantined=True
            )
            crash("first")
        shifts.wait_for(instance)
    assert (instance.rollback, undone) == ("failed", [])
    assert rollback_attempts(instance, "b")[-1] == "errored"
    last = Attempt.objects.filter(instance=instance, phase="rollback").latest("number")
    assert last.error["type"] == "WorkerLostError"


def test_a_drain_amid_a_rollback_gives_it_back(undone: list[str], undo: Undo, gate: Gate) -> None:
    """The running one ends; another worker does the rest"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=undo)
        await step.do("b", str, rollback=gate)
        raise LookupError

    instance = story.start()
    with shifts.running_shift():
        gate.wait()
        threading.Timer(0.2, gate.let_out.set).start()
    instance.refresh()
    assert (instance.status, instance.rollback, undone) == ("queued", "running", [])
    assert rollback_attempts(instance, "b") == ["complete"]
    shifts.run_to_end(instance)
    assert (instance.rollback, undone, len(gate.seen)) == ("complete", ["a"], 1)


def test_a_drain_before_the_first_rollback_begins_none(undone: list[str], undo: Undo) -> None:
    """The handler has failed, and a body is slow to end, when the worker is told to stop"""
    has_begun, told = threading.Event(), threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> None:
        def slow(ctx: RollbackContext) -> None:
            has_begun.set()
            assert ctx.cancelled.wait(60)
            told.set()
            time.sleep(0.5)

        def decline_then() -> None:
            assert has_begun.wait(60)
            decline()

        await asyncio.gather(step.do("slow", slow, rollback=undo), step.do("bad", decline_then))

    instance = story.start()
    with shifts.running_shift():
        assert told.wait(60)
    instance.refresh()
    assert (instance.status, instance.rollback, instance.ends_as, undone) == (
        "queued",
        "running",
        "errored",
        [],
    )
    shifts.run_to_end(instance)
    assert (instance.rollback, undone) == ("complete", ["slow"])


# Changed code


def test_a_step_that_the_code_no_longer_calls_cannot_be_undone(undone: list[str], undo: Undo) -> None:
    """CF-89: that rollback has failed and says why, those before it are not run; it is terminated all the same"""
    names = ["a", "b", "c"]

    @workflow
    async def story(step: WorkflowStep) -> None:
        for name in names:
            await step.do(name, str, rollback=undo)
        await step.sleep("nap", "1h")

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_for(instance, "waiting")
    names.remove("b")
    instance.terminate(rollback=True)
    shifts.run_to_end(instance)
    assert (instance.status, instance.rollback, undone) == ("terminated", "failed", ["c"])
    assert rollbacks(instance) == {"b": "failed", "c": "complete"}
    attempt = Attempt.objects.get(instance=instance, phase="rollback", status="errored")
    assert attempt.error["type"] == "RollbackNotFoundError"
    assert '"b"' in attempt.error["message"]

    names.insert(1, "b")
    instance.retry_rollback(by="ada", reason="the code is back")
    assert (instance.status, instance.rollback, instance.ends_as) == ("queued", "running", "terminated")
    shifts.run_to_end(instance)
    assert (instance.status, instance.rollback, undone) == ("terminated", "complete", ["c", "b", "a"])
    trail = Audit.objects.latest("key")
    assert (trail.verb, trail.actor, trail.before, trail.after) == (
        "retry_rollback",
        "ada",
        "terminated",
        "queued",
    )


def test_an_output_that_new_code_refuses_pauses_the_rollback(undone: list[str]) -> None:
    """Guarantee 4: nothing rolls back; once the code is fixed it continues, with the error it had"""
    kinds: list[type] = [str]

    @workflow
    async def story(step: WorkflowStep) -> None:
        def body() -> object:
            return "text"

        body.__annotations__["return"] = kinds[0]
        options = {"delay": "1h"}

        def flaky(ctx: RollbackContext) -> None:
            undone.append(ctx.output)
            if ctx.attempt == 1:
                raise ValueError

        await step.do("a", body, rollback=flaky, rollback_options=options)
        raise LookupError("original")

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        kinds[0] = int
        skip_wait(instance)
        wait_for(instance, "paused")
        assert (instance.pause_reason["type"], instance.rollback) == ("NonDeterminismError", "running")
        kinds[0] = str
        assert instance.resume().error["message"] == "original"
        wait_for(instance)
    assert (instance.status, instance.error["message"], undone) == ("errored", "original", ["text", "text"])


# Retry


def test_a_failed_rollback_can_be_retried_with_all_its_attempts(undone: list[str], undo: Undo) -> None:
    """Guarantee 15: an operator retries from there; what was undone before is not undone again"""
    repaired: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        def flaky(ctx: RollbackContext) -> None:
            if ctx.attempt < 4:
                raise ValueError(ctx.attempt)
            repaired.append(ctx.attempt)

        await step.do("a", str, rollback=undo)
        await step.do("b", str, rollback=flaky, rollback_options={"max_attempts": 2, "delay": 0})
        await step.do("c", str, rollback=undo)
        raise LookupError("original")

    instance = run_to_end(story.start())
    assert (instance.rollback, rollback_attempts(instance, "b")) == ("failed", ["errored"] * 2)
    instance.retry_rollback()
    assert (instance.status, instance.finished_at, rollbacks(instance)["b"]) == ("queued", None, "running")
    run_to_end(instance)
    assert (instance.status, instance.rollback, instance.error["message"]) == (
        "errored",
        "complete",
        "original",
    )
    assert rollback_attempts(instance, "b") == ["errored"] * 3 + ["complete"]
    assert (undone, repaired) == (["c", "a"], [4])


def test_only_a_failed_rollback_can_be_retried(undo: Undo) -> None:
    @workflow
    async def story(step: WorkflowStep, params: str) -> None:
        await step.do("a", str, rollback=undo)
        if params == "fail":
            raise LookupError

    for params in ("fail", "complete"):
        instance = run_to_end(story.start(params))
        with pytest.raises(RollbackNotFailedError):
            instance.retry_rollback()
    with pytest.raises(RollbackNotFailedError):
        story.start("fail").retry_rollback()


def test_the_async_twins(undone: list[str]) -> None:
    broken = [True]

    @workflow
    async def story(step: WorkflowStep) -> None:
        def undo(ctx: RollbackContext) -> None:
            if broken:
                decline()
            undone.append(ctx.name)

        await step.do("a", str, rollback=undo)
        await step.sleep("nap", "1h")

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
    async_to_sync(instance.aterminate)(rollback=True)
    run_to_end(instance)
    broken.clear()
    async_to_sync(instance.aretry_rollback)()
    assert (run_to_end(instance).rollback, undone) == ("complete", ["a"])
