"""A workflow runs in the test's own transaction and thread, with a clock that jumps."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction
from django.test import TestCase

from engine import StepContext, StepError, WorkflowStep, branch, define_step, workflow
from engine.models import Instance
from engine.testing import (
    NonDeterministicHandlerError,
    NotFinishedError,
    WorkflowTestError,
    workflow_test,
)
from engine.values.errors import ChildWorkflowError


def test_sleeps_and_back_offs_take_no_time_and_the_clock_tells_of_them() -> None:
    made = []

    def flaky() -> str:
        made.append(1)
        if len(made) < 3:
            raise ConnectionError("away")
        return "there"

    @workflow
    async def slow(step: WorkflowStep) -> list[Any]:
        began = step.now()
        await step.sleep("nap", "2 days")
        slept = step.now() - began
        found = await step.do("fetch", flaky, delay="1h", max_delay="5h")
        return [slept.total_seconds(), (step.now() - began - slept).total_seconds(), found]

    began = time.monotonic()
    with workflow_test(slow, now=datetime(2030, 1, 1, tzinfo=UTC)) as test:
        instance = test.run()
        assert instance.output == [2 * 86400.0, 3 * 3600.0, "there"]
        assert instance.created_at == datetime(2030, 1, 1, tzinfo=UTC)
        assert instance.finished_at == test.time.now() == datetime(2030, 1, 3, 3, tzinfo=UTC)
        assert [one.status for one in test.attempts("fetch")] == ["errored", "errored", "complete"]
    assert time.monotonic() - began < 60


def test_bodies_see_the_rows_of_the_test_and_the_test_sees_theirs() -> None:
    thread = threading.get_ident()

    def sync() -> int:
        assert threading.get_ident() == thread
        Group.objects.create(name="by a sync body")
        return Group.objects.count()

    async def asynchronous() -> int:
        await Group.objects.acreate(name="by an async body")
        return await Group.objects.acount()

    @workflow
    async def counts(step: WorkflowStep) -> list[int]:
        return [await step.do("sync", sync), await step.do("async", asynchronous)]

    Group.objects.create(name="of the test")
    with workflow_test(counts) as test:
        assert test.run().output == [2, 3]
    assert set(Group.objects.values_list("name", flat=True)) == {
        "of the test",
        "by a sync body",
        "by an async body",
    }


def test_each_statement_of_a_body_stands_alone_as_without_the_transaction_of_the_test() -> None:
    """What an attempt wrote before it failed stays, and a statement that fails breaks nothing."""

    def careless(ctx: StepContext) -> int:
        Group.objects.create(name=f"attempt {ctx.attempt}")
        if ctx.attempt == 1:
            Group.objects.create(name="attempt 1")  # refused by the database
        with pytest.raises(IntegrityError):
            Group.objects.create(name="attempt 1")
        return Group.objects.count()

    @workflow
    async def writes(step: WorkflowStep) -> int:
        return await step.do("write", careless)

    with workflow_test(writes) as test:
        assert test.run().output == 2
        assert [one.status for one in test.attempts("write")] == ["errored", "complete"]


def test_what_a_body_leaves_for_its_commit_happens() -> None:
    sent = []

    def order() -> None:
        with transaction.atomic():
            transaction.on_commit(lambda: sent.append("mail"))
            assert sent == []

    def atomic_order() -> None:
        transaction.on_commit(lambda: sent.append("atomic mail"))

    def undone() -> None:
        transaction.on_commit(lambda: sent.append("never"))
        raise ValueError

    @workflow
    async def orders(step: WorkflowStep) -> None:
        await step.do("order", order)
        await step.do("atomic", atomic_order, atomic=True)
        await step.do("undone", undone, atomic=True, max_attempts=1)

    with workflow_test(orders) as test:
        assert test.run().status == "errored"
    assert sent == ["mail", "atomic mail"]


def test_an_atomic_step_writes_once_whatever_dies(nothing_is_violated: None) -> None:
    def write() -> int:
        Group.objects.create(name=f"group {Group.objects.count()}")
        return Group.objects.count()

    @workflow
    async def writes(step: WorkflowStep) -> list[int]:
        return [
            await step.do("before", write, atomic=True),
            await step.do("after", write, atomic=True),
        ]

    with workflow_test(writes) as test:
        test.crash_before("before")
        test.crash_after("after")
        assert test.run().output == [1, 2]
        assert [one.status for one in test.attempts("before")] == ["lost", "complete"]
        assert [one.status for one in test.attempts("after")] == ["complete"]
    assert Group.objects.count() == 2


def test_an_atomic_rollback_writes_once_whatever_dies(nothing_is_violated: None) -> None:
    def write(name: str) -> None:
        Group.objects.create(name=f"{name} {Group.objects.count()}")

    @workflow
    async def books(step: WorkflowStep) -> None:
        await step.do("book", write, "booked", atomic=True, rollback=lambda ctx: write("refunded"))
        await step.do("van", write, "van", atomic=True, rollback=lambda ctx: write("no van"))
        await step.fail("sold out")

    with workflow_test(books) as test:
        test.crash_before("van", kind="rollback")
        test.crash_after("van", kind="rollback")
        test.crash_after("book", kind="rollback")
        assert test.run().rollback == "complete"
    names = [name.split(" ")[0] for name in Group.objects.order_by("id").values_list("name", flat=True)]
    assert names == ["booked", "van", "no", "refunded"]


def test_all_that_a_handler_can_call_runs(nothing_is_violated: None) -> None:
    @define_step(timeout="1m")
    def charge(amount: int) -> int:
        return amount

    @workflow
    async def child(step: WorkflowStep, number: int) -> int:
        await step.sleep("grow", "1h")
        return number * 10

    async def outer(step: WorkflowStep) -> int:
        return await step.do("inner", lambda: 4) + 1

    @workflow
    async def everything(step: WorkflowStep) -> dict[str, Any]:
        await step.progress("begins")
        handle = await step.spawn("aside", child, 7)
        found: dict[str, Any] = {
            "run": await step.run(charge, 5),
            "map": await step.map("each", [1, 2, 3], lambda item, index: item * index),
            "nested": await step.do("outer", outer, step),
            "child": await step.run_workflow("one", child, 1),
            "parallel": await step.parallel("many", branch(child, 2), branch(child, 3)),
            "spawned": (await step.wait_for_instance("spawned", handle)).output,
            "event": (await step.wait_for_event("news", timeout="3 days")).payload,
            "asked": (await step.request("ask", bool, message="Go on?")).value,
        }
        step.log.info("done")
        return found

    for always_replay in (False, True):
        with workflow_test(everything, always_replay=always_replay) as test:
            test.send_event("news", [1, 2])
            test.answer("ask", value=True, by="ana")
            assert test.run_to_end().output == {
                "run": 5,
                "map": [0, 2, 6],
                "nested": 5,
                "child": 10,
                "parallel": [20, 30],
                "spawned": 70,
                "event": [1, 2],
                "asked": True,
            }
            assert {row.status for row in Instance.objects.all()} == {"complete"}


def test_always_replay_names_the_steps_of_a_branch_that_is_not_taken_again() -> None:
    turns: list[int] = []

    @workflow
    async def flips(step: WorkflowStep) -> None:
        await step.do("before", str)
        turns.append(1)
        branch = "heads" if len(turns) % 2 else "tails"
        await step.do(branch, str)
        await step.do(branch, str)
        await step.do("after", str)

    with workflow_test(flips) as test:
        assert test.run().status == "complete"
    turns.clear()
    with (
        pytest.raises(NonDeterministicHandlerError) as caught,
        workflow_test(flips, always_replay=True) as test,
    ):
        test.run()
    assert caught.value.missing == ('"heads"',)
    assert caught.value.instead == ('"tails"',)
    assert (
        'did not call step "heads", which an earlier run had called. It called step "tails" instead.'
        in str(caught.value)
    )


@pytest.mark.parametrize("end", ["return", "raise", "fail", "park"])
def test_always_replay_finds_a_missing_step_however_the_handler_goes_on(end: str) -> None:
    turns: list[int] = []

    @workflow
    async def forgets(step: WorkflowStep) -> None:
        turns.append(1)
        if len(turns) == 1:
            await step.do("once", str)
        match end:
            case "raise":
                raise LookupError
            case "fail":
                await step.fail("no")
            case "park":
                await step.listen("go")

    with (
        pytest.raises(NonDeterministicHandlerError, match='did not call step "once"'),
        workflow_test(forgets, always_replay=True) as test,
    ):
        test.run()


def test_a_rollback_runs_and_can_be_made_to_fail(nothing_is_violated: None) -> None:
    undone = []

    @workflow
    async def sale(step: WorkflowStep) -> None:
        await step.do("charge", lambda: 1, rollback=lambda ctx: undone.append("charge"))
        await step.do("reserve", lambda: 2, rollback=lambda ctx: undone.append("reserve"))
        await step.fail("sold out")

    with workflow_test(sale) as test:
        test.mock("reserve", kind="rollback", error=ConnectionError, times=2)
        test.crash_before("charge", kind="rollback")
        instance = test.run()
        assert (instance.status, instance.rollback) == ("errored", "complete")
        assert [one.status for one in test.attempts("reserve", rollback=True)] == [
            "errored",
            "errored",
            "complete",
        ]
        assert [one.status for one in test.attempts("charge", rollback=True)] == ["lost", "complete"]
    assert undone == ["reserve", "charge"]


def test_async_bodies_wait_on_the_clock_of_the_test_and_time_out_by_it() -> None:
    async def long(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    @workflow
    async def bodies(step: WorkflowStep) -> list[str]:
        both = await asyncio.gather(step.do("a", long, 30), step.do("b", long, 3600, timeout="2h"))
        try:
            await step.do("c", long, 3600, timeout="1m", max_attempts=2)
        except StepError as error:
            return [*both, error.type]
        return both

    began = time.monotonic()
    with workflow_test(bodies) as test:
        assert test.run().output == ["done", "done", "StepTimeoutError"]
        assert [one.status for one in test.attempts("c")] == ["timed_out", "timed_out"]
        [first] = test.attempts("a")
        assert first.finished_at is not None
        assert round((first.finished_at - first.started_at).total_seconds()) == 30
    assert time.monotonic() - began < 60


def test_a_body_that_waits_for_a_thread_waits_for_it() -> None:
    ended = []

    async def both() -> list[str]:
        async def thread() -> None:
            await asyncio.to_thread(time.sleep, 0.05)
            ended.append("thread")

        async def timer() -> None:
            await asyncio.sleep(300)
            ended.append("timer")

        await asyncio.gather(thread(), timer())
        return ended

    @workflow
    async def threads(step: WorkflowStep) -> list[str]:
        return await step.do("both", both)

    with workflow_test(threads) as test:
        assert test.run().output == ["thread", "timer"]


def test_a_body_that_waits_for_a_thread_of_its_own_is_not_given_up_at_once() -> None:
    async def own() -> str:
        loop = asyncio.get_running_loop()
        answer = loop.create_future()

        def work() -> None:
            time.sleep(0.1)
            loop.call_soon_threadsafe(answer.set_result, "done")

        thread = threading.Thread(target=work)
        thread.start()
        try:
            return str(await answer)
        finally:
            thread.join()

    @workflow
    async def threads(step: WorkflowStep) -> str:
        return await step.do("thread", own, max_attempts=1)

    with workflow_test(threads) as test:
        assert test.run().output == "done"


def test_a_body_may_call_async_code_from_sync_code_from_async_code() -> None:
    async def innermost() -> int:
        return await Group.objects.acount()

    async def outermost() -> int:
        return await sync_to_async(lambda: async_to_sync(innermost)())()

    @workflow
    async def layers(step: WorkflowStep) -> list[int]:
        return [
            await step.do("sync", lambda: async_to_sync(innermost)()),
            await step.do("async", outermost),
        ]

    Group.objects.create(name="one")
    with workflow_test(layers) as test:
        assert test.run().output == [1, 1]


def test_what_bodies_do_to_instances_that_run_is_seen_at_once(nothing_is_violated: None) -> None:
    def pause(ctx: StepContext) -> None:
        Instance.objects.get(id=ctx.instance_id).pause(reason="from within")

    @workflow
    async def pauses(step: WorkflowStep) -> str:
        await step.do("pause", pause)
        return await step.do("then", lambda: "done")

    with workflow_test(pauses) as test:
        instance = test.run()
        assert (instance.status, test.steps("then")) == ("paused", [])
        instance.resume()
        assert test.run().output == "done"

    @workflow
    async def long(step: WorkflowStep) -> None:
        await step.do("long", asyncio.sleep, 100)

    @workflow
    async def ends(step: WorkflowStep, key: int) -> None:
        await step.do("end", lambda: Instance.objects.get(key=key).terminate() and None)

    with workflow_test(ends) as test:
        began, other = test.time.now(), long.start()
        test.run(other.key)
        assert (other.refresh().status, test.time.now()) == ("terminated", began)
        test.run(other)
        assert [one.status for one in test.attempts("long")] == ["cancelled"]


def test_a_workflow_that_nobody_named_is_run_as_well() -> None:
    @workflow
    async def other(step: WorkflowStep) -> str:
        return "ran"

    with workflow_test() as test:
        instance = other.start()
        assert test.run(instance).output == "ran"
        with pytest.raises(WorkflowTestError, match=r"workflow_test\(ship_order\)"):
            test.start()


def test_what_ends_the_test_is_no_outcome_of_a_step() -> None:
    class Interrupted(BaseException):
        """As KeyboardInterrupt and pytest.fail() are."""

    def interrupt() -> None:
        raise Interrupted

    @workflow
    async def in_body(step: WorkflowStep) -> None:
        await step.do("interrupt", interrupt)

    @workflow
    async def in_handler(step: WorkflowStep) -> None:
        raise Interrupted

    for one in (in_body, in_handler):
        with workflow_test(one) as test, pytest.raises(Interrupted):
            test.run()


def test_a_child_may_be_mocked_wherever_it_is_started() -> None:
    @workflow
    async def bill(step: WorkflowStep, amount: int) -> int:
        raise AssertionError("the real one")

    @workflow
    async def order(step: WorkflowStep) -> list[Any]:
        found: list[Any] = [await step.run_workflow("first", bill, 1)]
        try:
            await step.run_workflow("second", bill, 2)
        except ChildWorkflowError as error:
            found.append(error.error and error.error.type)
        return [*found, await step.run_workflow("third", bill, 3)]

    with workflow_test(order) as test:
        test.mock(bill, result=11, times=1)
        test.mock(bill, error=LookupError("no such account"), times=1)
        test.mock(bill, call=lambda amount: amount * 2)
        assert test.run().output == [11, "LookupError", 6]


def test_it_runs_where_transactions_are_real(transactional_db: None) -> None:
    def write() -> int:
        Group.objects.create(name="one")
        return Group.objects.count()

    @workflow
    async def writes(step: WorkflowStep) -> int:
        await step.sleep("nap", "1h")
        return await step.do("write", write, atomic=True)

    with workflow_test(writes) as test:
        test.crash_before("write")
        assert test.run().output == 1
    assert not connection.in_atomic_block


async def test_a_running_loop_is_refused_with_advice() -> None:
    with pytest.raises(WorkflowTestError, match="plain function"):
        workflow_test().__enter__()


def test_an_endless_workflow_does_not_run_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.testing.running.MAX_MOVES", 5)

    @workflow
    async def endless(step: WorkflowStep) -> None:
        while True:
            await step.sleep("nap", timedelta(minutes=5))

    with workflow_test(endless) as test, pytest.raises(NotFinishedError, match="still runs after"):
        test.run()


class TestInDjangosTestCase(TestCase):
    async def test_it_runs_from_an_async_test(self) -> None:
        @workflow
        async def in_async_test(step: WorkflowStep) -> list[int]:
            return [await step.do("async", Group.objects.acount), await step.do("sync", Group.objects.count)]

        def run() -> list[int]:
            with workflow_test(in_async_test) as test:
                return list(test.run().output)

        await Group.objects.acreate(name="of the test")
        count = await Group.objects.acount()
        assert await sync_to_async(run)() == [count, count]

    def test_it_runs(self) -> None:
        @workflow
        async def in_test_case(step: WorkflowStep) -> int:
            await step.sleep("nap", "1d")
            return await step.do("count", Group.objects.count)

        Group.objects.create(name="of the test")
        with workflow_test(in_test_case) as test:
            assert test.run_to_end().output == Group.objects.count()


def test_what_the_database_refuses_costs_the_instance_and_not_the_test() -> None:
    @workflow
    async def refused(step: WorkflowStep) -> int:
        return await step.do("write", lambda: 7)

    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE engine_step ADD CONSTRAINT no_7 CHECK (output::text <> '7')")
    with workflow_test(refused) as test:
        error = test.run().error
    assert error is not None
    assert error["type"] == "CheckViolation"
    assert Group.objects.count() == 0


def test_children_go_on_while_a_body_of_their_parent_waits() -> None:
    @workflow
    async def child(step: WorkflowStep) -> None:
        await step.sleep("nap", "1h")

    @workflow
    async def parent(step: WorkflowStep) -> None:
        long = step.do("long", asyncio.sleep, 7000, timeout="3h")
        await asyncio.gather(long, step.run_workflow("child", child, None))

    with workflow_test(parent, now=datetime(2030, 1, 1, tzinfo=UTC)) as test:
        test.run()
        assert round((test.instance.finished_at - datetime(2030, 1, 1, tzinfo=UTC)).total_seconds()) == 7000
        grown = Instance.objects.get(workflow="child")
        assert round((grown.finished_at - datetime(2030, 1, 1, tzinfo=UTC)).total_seconds()) == 3600


def test_a_nested_step_backs_off_by_what_its_delay_function_says() -> None:
    def delay(ctx: StepContext, error: BaseException) -> str:
        return f"{ctx.attempt} h"

    async def outer(step: WorkflowStep) -> int:
        return await step.do(
            "inner", lambda ctx: ctx.attempt, delay=delay, backoff="constant", max_delay="1d"
        )

    @workflow
    async def nests(step: WorkflowStep) -> list[float]:
        began = step.now()
        attempt = await step.do("outer", outer, step, timeout="1d")
        return [attempt, round((step.now() - began).total_seconds())]

    with workflow_test(nests) as test:
        test.mock("inner", error=ConnectionError, times=2, inside="outer")
        assert test.run().output == [3, 3 * 3600]


def test_instances_over_the_limit_have_their_turn() -> None:
    @workflow(max_running=1)
    async def limited(step: WorkflowStep, number: int) -> int:
        return await step.do("work", asyncio.sleep, 60, number)

    with workflow_test(limited) as test:
        first = test.start(1)
        assert test.run(2).output == 2
        assert first.refresh().output == 1
        assert {first.finished_at, test.instance.finished_at} == {
            first.created_at + timedelta(seconds=60),
            first.created_at + timedelta(seconds=120),
        }
