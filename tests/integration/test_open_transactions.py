"""A body that leaves a transaction open fails its attempt, and harms nobody whose body comes after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from engine import StepContext, WorkflowStep, workflow
from engine.models import Instance
from engine.worker.bodies import attempt
from tests.records import attempts, outcomes
from tests.shifts import run_to_end, running_shift, wait_for
from tests.shop import execute, open_shop, sales, sell

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")


@pytest.fixture(autouse=True)
def _shop(engine_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let all bodies share a thread and its connection, in a shop."""
    monkeypatch.setattr(attempt, "SYNC_BODIES", 1)
    monkeypatch.setattr(attempt, "ORM_CALLS", 1)
    with open_shop():
        yield


@pytest.fixture(autouse=True)
def _other_database(engine_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same database under another name, which is another connection."""

    def ensure_connection(self: BaseDatabaseWrapper) -> None:
        if self.connection is None:
            self.connect()  # the test's guard knows of no other database, and would refuse this

    monkeypatch.setitem(connections.settings, "other", connections.settings["default"])
    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", ensure_connection)


def begins_by_sql(ctx: StepContext) -> None:
    execute("BEGIN")
    sell(ctx, "careless")


def enters_by_hand(ctx: StepContext) -> None:
    transaction.atomic().__enter__()
    sell(ctx, "careless")


def turns_autocommit_off(ctx: StepContext) -> None:
    transaction.set_autocommit(False)
    sell(ctx, "careless")


def leaves_a_broken_one(ctx: StepContext) -> None:
    execute("BEGIN")
    with pytest.raises(Exception, match="does not exist"):
        execute("SELECT nothing FROM shop_sale")


def closes_within(ctx: StepContext) -> None:
    transaction.atomic().__enter__()
    sell(ctx, "careless")
    connection.close()


CARELESS = [begins_by_sql, enters_by_hand, turns_autocommit_off, leaves_a_broken_one, closes_within]


def of_async(body: Callable[[StepContext], None]) -> Callable[[StepContext], Any]:
    async def call(ctx: StepContext) -> None:
        await sync_to_async(body)(ctx)

    return call


def play(body: Callable[..., Any]) -> tuple[Instance, list[Instance]]:
    """Run one instance with this body, and others after it on the same connection."""

    @workflow
    async def careless(step: WorkflowStep) -> Any:
        return await step.do("careless", body, max_attempts=1)

    @workflow
    async def careful(step: WorkflowStep) -> None:
        await step.do("sync", sell)
        await step.do("async", of_async(sell))
        await step.do("atomic", sell, atomic=True)

    with running_shift():
        one = wait_for(careless.start())
        others = [wait_for(careful.start()) for _ in range(2)]
    return one, others


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("careless", CARELESS)
def test_a_body_that_leaves_a_transaction_open_fails_and_harms_nobody(
    careless: Callable[[StepContext], None], is_async: bool
) -> None:
    one, others = play(of_async(careless) if is_async else careless)
    assert (one.status, one.error["type"]) == ("errored", "OpenTransactionError")
    assert one.error["message"].startswith(
        'The body of step "careless" left a transaction open on the database "default". It was rolled back'
    )
    assert (sales(one), outcomes(one, "careless")) == ([], ["errored"])
    assert [other.status for other in others] == ["complete"] * 2
    assert [sales(other) for other in others] == [[(1, "sold")] * 3] * 2


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_it_fails_for_a_transaction_on_any_database(is_async: bool) -> None:
    def body(ctx: StepContext) -> None:
        with connections["other"].cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("INSERT INTO shop_sale VALUES (%s, 1, 'careless')", [ctx.instance_id])

    one, _ = play(of_async(body) if is_async else body)
    assert (one.status, one.error["type"], sales(one)) == ("errored", "OpenTransactionError", [])
    assert '"other"' in one.error["message"]
    with transaction.atomic():
        execute("LOCK TABLE shop_sale IN ACCESS EXCLUSIVE MODE NOWAIT")  # no transaction has written to it


def test_an_attempt_after_it_begins_with_a_clean_connection() -> None:
    def body(ctx: StepContext) -> None:
        sell(ctx)
        if ctx.attempt == 1:
            begins_by_sql(ctx)

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("sell", body, delay=0)

    instance = run_to_end(story.start())
    assert (instance.status, outcomes(instance, "sell")) == ("complete", ["errored", "complete"])
    assert sales(instance) == [(1, "sold"), (2, "sold")]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_body_that_raises_out_of_a_transaction_keeps_its_own_error(is_async: bool) -> None:
    def body(ctx: StepContext) -> None:
        begins_by_sql(ctx)
        raise LookupError("sold out")

    one, others = play(of_async(body) if is_async else body)
    assert (one.error["type"], one.error["message"], sales(one)) == ("LookupError", "sold out", [])
    assert [sales(other) for other in others] == [[(1, "sold")] * 3] * 2


def test_a_body_whose_awaitable_is_still_to_come_fails_before_that_runs() -> None:
    async def never() -> None:
        raise AssertionError

    def body(ctx: StepContext) -> Any:
        begins_by_sql(ctx)
        return never()

    one, _ = play(body)
    assert (one.error["type"], sales(one)) == ("OpenTransactionError", [])


def test_a_call_to_a_thread_leaves_no_transaction_either() -> None:
    async def body(ctx: StepContext) -> None:
        await sync_to_async(begins_by_sql, thread_sensitive=False)(ctx)

    one, _ = play(body)
    assert (one.error["type"], sales(one)) == ("OpenTransactionError", [])


def test_transactions_that_are_ended_are_well() -> None:
    def body(ctx: StepContext) -> None:
        execute("BEGIN")
        sell(ctx, "by SQL")
        execute("COMMIT")
        with transaction.atomic():
            sell(ctx, "by atomic()")
        transaction.set_autocommit(False)
        sell(ctx, "by commit()")
        transaction.commit()
        transaction.set_autocommit(True)

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("sync", body)
        await step.do("async", of_async(body))

    instance = run_to_end(story.start())
    assert sorted(sales(instance)) == sorted([(1, "by SQL"), (1, "by atomic()"), (1, "by commit()")] * 2)


def test_rollbacks_and_nested_bodies_are_held_to_it_too() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        async def outer() -> None:
            await step.do("inner", begins_by_sql, max_attempts=1)

        await step.do("undone", sell, rollback=begins_by_sql, rollback_options={"max_attempts": 1})
        await step.do("outer", outer, max_attempts=1)

    instance = run_to_end(story.start())
    assert (instance.status, instance.rollback) == ("errored", "failed")
    assert attempts(instance, "inner")[-1].error["type"] == "OpenTransactionError"
    assert attempts(instance, "undone")[-1].error["type"] == "OpenTransactionError"
    assert sales(instance) == [(1, "sold")]
