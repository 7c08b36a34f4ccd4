"""An atomic body and what ends its attempt: one comes first, and what the body wrote agrees with the record."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection, connections, transaction

from engine import NonRetryableError, RollbackContext, StepContext, StepError, WorkflowStep, workflow
from engine.declare.registry import Workflow
from engine.models import Attempt, Instance, Step
from engine.replay.exit.exit import Exit
from engine.worker import claims, shift
from tests import shifts
from tests.faults.points import violations
from tests.guards import unguarded
from tests.records import attempts, crash, outcomes, statuses, step
from tests.shop import execute, open_shop, sales, sell
from tests.stories import run_to_end, wait_until

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OPTIONS = {"max_attempts": 5, "atomic": True}


@pytest.fixture(autouse=True)
def _shop(_story: None) -> Iterator[None]:
    with open_shop():
        yield
        assert violations() == []


class Gate:
    """Where a body waits until the test lets it continue; by default only the first attempt."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def stop_at(self, ctx: StepContext) -> None:
        if ctx.attempt == 1:
            self.reached.set()
            assert self.opened.wait(60)

    def wait(self) -> None:
        assert self.reached.wait(60)


@pytest.fixture
def gate() -> Iterator[Gate]:
    one = Gate()
    yield one
    one.opened.set()


@pytest.fixture
def story(gate: Gate) -> Workflow[Any, Any]:
    """One atomic step that waits at the gate after it has sold."""

    def body(ctx: StepContext) -> int:
        sell(ctx)
        gate.stop_at(ctx)
        return ctx.attempt

    @workflow
    async def story(step: WorkflowStep) -> Any:
        return await step.do("sell", body, atomic=True, delay=0)

    return story


@contextmanager
def locked(instance: Instance) -> Iterator[Callable[[], None]]:
    """Hold the instance's row, as a sender in a transaction does, until it is told to release it."""
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Instance.objects.select_for_update(no_key=True).get(key=instance.key)
            held.set()
            assert let_go.wait(60)
        connections.close_all()

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    try:
        yield let_go.set
    finally:
        let_go.set()
        thread.join(60)


def wait_for_checkpoint() -> None:
    """Wait until a checkpoint of a body waits for the instance's row."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%%WITH ours AS%%'"

    def waits() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(query)
            return bool(cursor.fetchone()[0])

    wait_until(waits, what="the checkpoint")


# While the body runs


def test_an_attempt_that_timed_out_leaves_no_lock_behind_though_its_thread_goes_on(gate: Gate) -> None:
    execute("INSERT INTO shop_sale VALUES ('stock', 0, 'one of a kind')")
    late: list[str] = []

    def body(ctx: StepContext) -> int:
        execute("UPDATE shop_sale SET attempt = %s WHERE instance = 'stock'", ctx.attempt)
        sell(ctx)
        gate.stop_at(ctx)
        if ctx.attempt == 1:
            try:
                sell(ctx, "too late")
            finally:
                late.append("refused")
        return ctx.attempt

    @workflow
    async def story(step: WorkflowStep) -> Any:
        return await step.do("sell", body, atomic=True, timeout=0.2, delay=0)

    instance = story.start()
    with shifts.running_shift():
        gate.wait()
        shifts.wait_for(instance)
        gate.opened.set()
        shifts.wait_until(lambda: late == ["refused"])
    assert (instance.output, outcomes(instance, "sell")) == (2, ["timed_out", "complete"])
    assert sales(instance) == [(2, "sold")]


def test_what_a_terminated_instance_wrote_is_rolled_back_at_once(
    story: Workflow[Any, Any], gate: Gate
) -> None:
    instance = story.start()
    with shifts.running_shift():
        gate.wait()
        instance.terminate()
        with transaction.atomic():
            execute("SET LOCAL lock_timeout = '10s'")
            execute("LOCK shop_sale IN ACCESS EXCLUSIVE MODE")  # nobody has written to it any more
        gate.opened.set()
    assert (instance.refresh().status, statuses(instance)) == ("terminated", {"sell": "cancelled"})
    assert sales(instance) == []


def test_what_the_last_generation_wrote_is_rolled_back_and_written_by_the_next(
    story: Workflow[Any, Any], gate: Gate
) -> None:
    """Guarantees 14, 17 and 18"""
    instance = story.start()
    with shifts.running_shift():
        gate.wait()
        instance.restart()
        gate.opened.set()
        shifts.wait_for(instance)
    assert (instance.generation, instance.output) == (2, 1)
    ended = Step.objects.filter(instance=instance).order_by("generation").values_list("status", flat=True)
    assert list(ended) == ["cancelled", "complete"]
    assert sales(instance) == [(1, "sold")]


def test_a_body_whose_instance_was_taken_over_commits_nothing(
    story: Workflow[Any, Any], gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker does not know yet, and the worker that took it over dies too."""
    monkeypatch.setattr(claims, "SWEEP_SECONDS", 0.2)
    instance = story.start()
    with shifts.running_shift():
        gate.wait()
        execute("UPDATE engine_instance SET fence = fence + 1, owner = 7 WHERE key = %s", instance.key)
        gate.opened.set()
        shifts.wait_for(instance)
    assert (instance.output, outcomes(instance, "sell")) == (2, ["lost", "complete"])
    assert sales(instance) == [(2, "sold")]


def test_a_body_whose_worker_lost_its_seat_commits_nothing(story: Workflow[Any, Any], gate: Gate) -> None:
    instance = story.start()
    with shifts.running_shift():
        gate.wait()
        crash()
        shifts.wait_until(lambda: outcomes(instance, "sell") == ["lost", "complete"])
        gate.opened.set()
        shifts.wait_for(instance)
    assert sales(instance) == [(2, "sold")]


def test_a_body_whose_attempt_is_over_commits_nothing(story: Workflow[Any, Any], gate: Gate) -> None:
    """The guard on the attempt's row, behind the fence"""
    instance = story.start()
    with unguarded("engine_attempt"), shifts.running_shift():
        gate.wait()
        Attempt.objects.update(status="cancelled", finished_at=NOW)
        gate.opened.set()
        shifts.wait_for(instance)
    assert outcomes(instance, "sell") == ["errored", "complete"]
    assert attempts(instance, "sell")[0].error["type"] == "AtomicStepError"
    assert sales(instance) == [(2, "sold")]


def test_a_body_that_terminates_its_own_instance_is_refused(gate: Gate) -> None:
    def body(ctx: StepContext) -> None:
        sell(ctx)
        Instance.objects.get(id=ctx.instance_id).terminate()

    @workflow
    async def story(step: WorkflowStep) -> Any:
        await step.do("sell", body, atomic=True, max_attempts=1)

    instance = shifts.run_to_end(story.start())
    assert (instance.status, instance.error["type"]) == ("errored", "AtomicStepError")
    assert sales(instance) == []


def test_a_pause_lets_the_body_run_to_its_end(gate: Gate) -> None:
    def body(ctx: StepContext) -> int:
        sell(ctx)
        gate.stop_at(ctx)
        return ctx.attempt

    @workflow
    async def story(step: WorkflowStep) -> int:
        sold = await step.do("sell", body, atomic=True, delay=0)
        await step.do("ship", str)  # otherwise it might end before its worker knows of the pause
        return sold

    instance = story.start()
    with shifts.running_shift():
        gate.wait()
        assert instance.pause().status == "waiting_for_pause"
        gate.opened.set()
        shifts.wait_for(instance, "paused")
        assert (step(instance, "sell").delivery, sales(instance)) == (1, [(1, "sold")])
        instance.resume()
        shifts.wait_for(instance)
    assert (instance.output, outcomes(instance, "sell")) == (1, ["complete"])
    assert sales(instance) == [(1, "sold")]


# While it is being committed


def test_a_commit_that_waits_past_the_timeout_comes_to_nothing(gate: Gate) -> None:
    def body(ctx: StepContext) -> int:
        sell(ctx)
        gate.stop_at(ctx)
        return ctx.attempt

    @workflow
    async def story(step: WorkflowStep) -> Any:
        return await step.do("sell", body, atomic=True, timeout=0.5, delay=0)

    instance = story.start()
    with shifts.running_shift():
        gate.wait()
        with locked(instance) as let_go:
            gate.opened.set()
            wait_for_checkpoint()
            # Its session ends: nothing waits for the row any more.
            shifts.wait_until(lambda: not waits_for_a_lock(), what="the end of the wait")
            let_go()
            shifts.wait_for(instance)
    assert (instance.output, outcomes(instance, "sell")) == (2, ["timed_out", "complete"])
    assert sales(instance) == [(2, "sold")]


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        return bool(cursor.fetchone()[0])


def test_a_handler_that_ends_meanwhile_waits_for_the_commit(gate: Gate) -> None:
    """Guarantee 10: its outcome is recorded, and reaches nobody but its rollback"""
    fails, has_failed = threading.Event(), threading.Event()
    undone: list[Any] = []

    def body(ctx: StepContext) -> str:
        sell(ctx)
        gate.stop_at(ctx)
        return "sold"

    def undo(ctx: RollbackContext) -> None:
        undone.append(ctx.output)

    def fail() -> None:
        assert fails.wait(60)
        raise NonRetryableError("for good")

    @workflow
    async def story(step: WorkflowStep) -> None:
        try:
            await asyncio.gather(step.do("sell", body, atomic=True, rollback=undo), step.do("fail", fail))
        finally:
            has_failed.set()

    instance = story.start()
    with shifts.running_shift():
        gate.wait()
        with locked(instance) as let_go:
            gate.opened.set()
            wait_for_checkpoint()
            fails.set()
            assert has_failed.wait(60)
            let_go()
            shifts.wait_for(instance)
    assert (instance.status, instance.error["message"]) == ("errored", "for good")
    assert (statuses(instance)["sell"], step(instance, "sell").delivery) == ("complete", None)
    assert (undone, instance.rollback, sales(instance)) == (["sold"], "complete", [(1, "sold")])


@dataclass
class Race:
    """A handler that cancels an atomic step when another one wins."""

    wins: threading.Event = field(default_factory=threading.Event)
    is_over: threading.Event = field(default_factory=threading.Event)

    def declare(self, gate: Gate) -> Workflow[Any, Any]:
        def body(ctx: StepContext) -> None:
            sell(ctx)
            gate.stop_at(ctx)

        def win() -> None:
            assert self.wins.wait(60)

        @workflow
        async def race(step: WorkflowStep) -> str:
            selling = asyncio.ensure_future(step.do("sell", body, atomic=True))
            await step.do("win", win)
            selling.cancel()
            self.is_over.set()
            return await step.do("after", str, "done")

        return race

    def be_won(self) -> None:
        self.wins.set()
        assert self.is_over.wait(60)


def test_a_step_that_the_handler_cancels_too_late_is_complete_and_reaches_nobody(
    gate: Gate,
) -> None:
    race = Race()
    instance = race.declare(gate).start()
    with shifts.running_shift():
        gate.wait()
        with locked(instance) as let_go:
            gate.opened.set()
            wait_for_checkpoint()
            race.be_won()
            let_go()
            shifts.wait_for(instance)
    assert (instance.status, instance.output) == ("complete", "done")
    assert (statuses(instance)["sell"], step(instance, "sell").delivery) == ("complete", None)
    assert sales(instance) == [(1, "sold")]


def test_a_step_that_the_handler_cancels_too_late_and_that_cannot_be_committed_is_cancelled(
    gate: Gate,
) -> None:
    race = Race()
    instance = race.declare(gate).start()
    with shifts.running_shift():
        gate.wait()
        with locked(instance) as let_go:
            gate.opened.set()
            wait_for_checkpoint()
            race.be_won()
            end_what_waits_for_a_lock()
            let_go()
            shifts.wait_for(instance)
    assert (instance.output, statuses(instance)["sell"]) == ("done", "cancelled")
    assert (outcomes(instance, "sell"), sales(instance)) == (["cancelled"], [])


def end_what_waits_for_a_lock() -> None:
    execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE wait_event_type = 'Lock' AND query LIKE '%WITH ours AS%'"
    )


def test_a_worker_that_drains_waits_for_the_commit(
    story: Workflow[Any, Any], gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    gives_back = threading.Event()
    release = Exit.release
    monkeypatch.setattr(shift, "GRACE_SECONDS", 0.1)
    monkeypatch.setattr(Exit, "release", lambda self: (release(self), gives_back.set()))
    instance = story.start()
    with ExitStack() as stack, shifts.running_shift():
        gate.wait()
        let_go = stack.enter_context(locked(instance))
        gate.opened.set()
        wait_for_checkpoint()
        threading.Thread(target=lambda: (gives_back.wait(60), let_go())).start()
    assert (instance.refresh().status, statuses(instance)["sell"]) == ("queued", "complete")
    shifts.run_to_end(instance)
    assert (instance.output, outcomes(instance, "sell")) == (1, ["complete"])
    assert sales(instance) == [(1, "sold")]


# Recorded, but the handler was not told


def left_behind(instance: Instance, *names: str) -> None:
    """Let these steps have been recorded by a worker that died before it knew."""
    for seq, name in enumerate(names, start=1):
        Step.objects.create(
            instance=instance,
            generation=1,
            seq=seq,
            kind="do",
            name=name,
            count=1,
            status="complete",
            attempts=1,
            options=OPTIONS,
            output=f"{name} of old",
            started_at=NOW,
            finished_at=NOW,
        )
        with unguarded("engine_attempt"):  # it has been begun before
            Attempt.objects.create(
                instance=instance,
                generation=1,
                step_seq=seq,
                number=1,
                status="complete",
                worker="dead",
                started_at=NOW,
                finished_at=NOW,
            )
    Instance.objects.filter(key=instance.key).update(fence=1, started_at=NOW)


def never(ctx: StepContext) -> str:
    raise AssertionError(f"{ctx.name} ran again")


def test_a_replay_delivers_what_was_recorded_and_runs_no_body_again() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        order: list[str] = []

        async def branch(name: str) -> str:
            value: str = await step.do(name, never, atomic=True)
            order.append(name)
            return value

        both = await asyncio.gather(branch("a"), branch("b"))
        await step.sleep("park", 0.01)
        return [*both, *order, await step.do("last", str, "last")]

    instance = story.start()
    left_behind(instance, "b", "a")
    run_to_end(instance)
    assert instance.output == ["a of old", "b of old", "a", "b", "last"]
    assert [step(instance, name).delivery for name in ("a", "b", "park", "last")] == [1, 2, 3, 4]


def test_it_comes_after_what_was_delivered_before() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        order: list[str] = []

        async def branch(name: str) -> None:
            await step.do(name, never, atomic=True)
            order.append(name)

        await asyncio.gather(branch("a"), branch("b"))
        return order

    instance = story.start()
    left_behind(instance, "a", "b")
    Step.objects.filter(instance=instance, name="b").update(delivery=1)
    run_to_end(instance)
    assert instance.output == ["b", "a"]
    assert (step(instance, "b").delivery, step(instance, "a").delivery) == (1, 2)


def test_nobody_need_be_told() -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        selling = asyncio.ensure_future(step.do("sell", never, atomic=True))
        await step.do("win", str, "won")
        selling.cancel()
        return await step.do("after", str, "done")

    instance = story.start()
    left_behind(instance, "sell")
    Step.objects.create(
        instance=instance,
        generation=1,
        seq=2,
        kind="do",
        name="win",
        count=1,
        status="complete",
        output="won",
        options={"max_attempts": 5},
        delivery=1,
        attempts=1,
        started_at=NOW,
        finished_at=NOW,
    )
    with unguarded("engine_attempt"):  # it has been begun before
        Attempt.objects.create(
            instance=instance,
            generation=1,
            step_seq=2,
            number=1,
            status="complete",
            worker="dead",
            started_at=NOW,
            finished_at=NOW,
        )
    run_to_end(instance)
    assert (instance.output, step(instance, "sell").delivery) == ("done", None)
    assert (step(instance, "sell").status, instance.unreached) == ("complete", [])


def test_it_is_rolled_back_where_the_instance_is_ended_before_the_handler_was_told() -> None:
    undone: list[Any] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("sell", never, atomic=True, rollback=lambda ctx: undone.append(ctx.output))

    instance = story.start()
    left_behind(instance, "sell")
    Step.objects.filter(instance=instance).update(options={**OPTIONS, "rollback": {"max_attempts": 1}})
    instance.terminate(rollback=True)
    shifts.run_to_end(instance)
    assert (instance.status, instance.rollback, undone) == ("terminated", "complete", ["sell of old"])
    assert (statuses(instance)["sell"], step(instance, "sell").delivery) == ("complete", None)


def test_what_cannot_be_recorded_afterwards_does_not_undo_it() -> None:
    """The step stays complete; the instance ends with the error of the database"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("sell", sell, atomic=True)
        step.log.info("poison")

    execute(
        "CREATE TRIGGER poison BEFORE INSERT ON engine_log FOR EACH ROW WHEN (NEW.message = 'poison') "
        "EXECUTE FUNCTION engine_refuse('No such line.')"
    )
    try:
        instance = run_to_end(story.start())
    finally:
        execute("DROP TRIGGER poison ON engine_log")
    assert (instance.status, "No such line." in instance.error["message"]) == ("errored", True)
    assert (statuses(instance), outcomes(instance, "sell")) == ({"sell": "complete"}, ["complete"])
    assert sales(instance) == [(1, "sold")]


def test_items_of_a_map_are_atomic_each() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        def body(item: int, index: int, ctx: StepContext) -> int:
            sell(ctx, str(item))
            if item == 2 and ctx.attempt == 1:
                raise ValueError("once")
            return item

        return await step.map("sell", [1, 2, 3], body, atomic=True, delay=0)

    instance = run_to_end(story.start())
    assert instance.output == [1, 2, 3]
    assert sorted(sales(instance)) == [(1, "1"), (1, "3"), (2, "2")]


def test_a_step_that_fails_for_good_is_caught_like_any() -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        def body(ctx: StepContext) -> None:
            sell(ctx)
            raise NonRetryableError("sold out")

        try:
            await step.do("sell", body, atomic=True)
        except StepError as error:
            return error.message
        return ""

    instance = run_to_end(story.start())
    assert (instance.output, sales(instance)) == ("sold out", [])
