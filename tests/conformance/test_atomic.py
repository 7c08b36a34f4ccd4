"""Atomic steps: what the body writes and the step's completion are one transaction (guarantee 18)."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
from django.db import IntegrityError, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from engine import StepConfigError, StepContext, WorkflowStep, define_step, workflow, workflows
from engine.declare.registry import Workflow
from engine.models import Event, Instance
from engine.worker import quarantined
from engine.worker.database import flush_sql
from engine.worker.database.shift_connection import ShiftConnection
from tests import shifts
from tests.faults.points import violations
from tests.records import attempts, outcomes, step
from tests.shifts import PATIENCE
from tests.shop import execute, open_shop, sales, sell
from tests.stories import run_to_end


@pytest.fixture(autouse=True)
def _shop(_story: None) -> Iterator[None]:
    with open_shop():
        yield
        assert violations() == []


def start(body: Callable[..., Any], **options: Any) -> Instance:
    """Start a workflow of one atomic step."""

    @workflow
    async def story(step: WorkflowStep) -> Any:
        return await step.do("sell", body, atomic=True, **{"delay": 0, "max_attempts": 3, **options})

    return story.start()


def start_alone(story: Workflow[Any, Any]) -> Instance:
    """Start an instance that must run alone, as if its last worker had died."""
    instance = story.start()
    Instance.objects.filter(key=instance.key).update(quarantined=True)
    return instance


def error_of(instance: Instance, attempt: int = 1) -> tuple[str, str]:
    error = attempts(instance, "sell")[attempt - 1].error
    return error["type"], error["message"]


def test_what_the_body_writes_and_its_completion_are_one_transaction() -> None:
    transactions: list[object] = []

    def body(ctx: StepContext) -> dict[str, int]:
        sell(ctx)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_xact_id()::text")
            transactions.append(cursor.fetchone())
        return {"attempt": ctx.attempt}

    instance = run_to_end(start(body))
    with connection.cursor() as cursor:
        cursor.execute("SELECT xmin::text FROM shop_sale")
        transactions.append(cursor.fetchone())
        cursor.execute("SELECT xmin::text FROM engine_attempt")
        transactions.append(cursor.fetchone())
    row = step(instance, "sell")
    assert (instance.output, sales(instance)) == ({"attempt": 1}, [(1, "sold")])
    assert transactions == [transactions[0]] * 3
    assert (row.status, row.output, row.delivery) == ("complete", {"attempt": 1}, 1)
    assert row.options["atomic"] is True
    assert outcomes(instance, "sell") == ["complete"]


def test_what_a_failed_attempt_wrote_is_gone() -> None:
    def body(ctx: StepContext) -> None:
        sell(ctx)
        ctx.log.info("sold")
        if ctx.attempt < 3:
            raise ValueError("not yet")

    instance = run_to_end(start(body))
    assert outcomes(instance, "sell") == ["errored", "errored", "complete"]
    assert sales(instance) == [(3, "sold")]


def test_a_step_that_fails_for_good_leaves_nothing() -> None:
    def body(ctx: StepContext) -> None:
        sell(ctx)
        raise ValueError("never")

    instance = run_to_end(start(body))
    assert (instance.status, instance.error["message"]) == ("errored", "never")
    assert (outcomes(instance, "sell"), sales(instance)) == (["errored"] * 3, [])


@pytest.mark.parametrize(
    ("value", "error"), [(object(), "InvalidValueError"), ("x" * 2**20, "LimitError")], ids=["what", "size"]
)
def test_an_output_that_cannot_be_stored_fails_the_step_at_once_and_leaves_nothing(
    value: object, error: str
) -> None:
    def body(ctx: StepContext) -> Any:
        sell(ctx)
        return value

    instance = run_to_end(start(body))
    assert (outcomes(instance, "sell"), instance.error["type"]) == (["errored"], error)
    assert sales(instance) == []


def test_a_savepoint_of_the_body_may_be_rolled_back() -> None:
    def body(ctx: StepContext) -> str:
        sell(ctx, "kept")
        with suppress(IntegrityError), transaction.atomic():
            sell(ctx, "undone")
            raise IntegrityError
        return "sold"

    instance = run_to_end(start(body))
    assert (instance.output, sales(instance)) == ("sold", [(1, "kept")])


def swallows_an_error() -> None:
    with pytest.raises(Exception, match="does not exist"):
        execute("SELECT nothing FROM shop_sale")


def marks_for_rollback() -> None:
    with pytest.raises(ValueError, match="on the way"), transaction.atomic(savepoint=False):
        raise ValueError("on the way")


MISHAPS = {
    "goes on after an error": (swallows_an_error, "Its body continued after a database error"),
    "sets rollback": (lambda: transaction.set_rollback(True), "It is marked for rollback"),
    "leaves an atomic by an error": (marks_for_rollback, "It is marked for rollback"),
    "closes the connection": (lambda: connection.close(), "Its body closed the database connection"),
    "closes all connections": (connections.close_all, "Its body closed the database connection"),
    "rolls back": (lambda: execute("ROLLBACK"), "Its body ended it with its own COMMIT or ROLLBACK"),
    "rolls back and goes on": (
        lambda: (execute("ROLLBACK"), execute("SELECT 1")),
        "Its body ended it with its own COMMIT or ROLLBACK",
    ),
}


@pytest.mark.parametrize(("mishap", "said"), MISHAPS.values(), ids=MISHAPS)
def test_a_body_that_spoils_its_transaction_is_told_so_and_tried_again(
    mishap: Callable[[], object], said: str
) -> None:
    def body(ctx: StepContext) -> str:
        sell(ctx)
        if ctx.attempt == 1:
            mishap()
        return "sold"

    instance = run_to_end(start(body))
    name, message = error_of(instance)
    assert name == "AtomicStepError"
    assert message.startswith(f'The transaction of step "sell" was rolled back. {said}')
    assert outcomes(instance, "sell") == ["errored", "complete"]
    assert (instance.output, sales(instance)) == ("sold", [(2, "sold")])


def test_a_deadlock_costs_an_attempt() -> None:
    def body(ctx: StepContext) -> None:
        sell(ctx)
        if ctx.attempt == 1:
            execute("DO $$ BEGIN RAISE EXCEPTION 'deadlock' USING ERRCODE = 'deadlock_detected'; END $$")

    instance = run_to_end(start(body))
    assert (error_of(instance)[0], outcomes(instance, "sell")) == (
        "OperationalError",
        ["errored", "complete"],
    )
    assert sales(instance) == [(2, "sold")]


def test_a_constraint_that_is_checked_at_the_commit_costs_an_attempt() -> None:
    execute("ALTER TABLE shop_sale ADD CONSTRAINT once UNIQUE (note) DEFERRABLE INITIALLY DEFERRED")

    def body(ctx: StepContext) -> None:
        sell(ctx)
        sell(ctx, "sold" if ctx.attempt == 1 else "sold too")

    instance = run_to_end(start(body))
    assert (error_of(instance)[0], outcomes(instance, "sell")) == ("IntegrityError", ["errored", "complete"])
    assert sales(instance) == [(2, "sold"), (2, "sold too")]


def test_an_on_commit_function_that_fails_does_not_undo_the_step(caplog: pytest.LogCaptureFixture) -> None:
    called: list[str] = []

    def body(ctx: StepContext) -> str:
        sell(ctx)
        transaction.on_commit(lambda: called.append("first"))
        transaction.on_commit(lambda: 1 / 0)
        return "sold"

    instance = run_to_end(start(body))
    assert (instance.output, sales(instance), called) == ("sold", [(1, "sold")], ["first"])
    assert 'an on_commit function of step "sell" failed' in caplog.text


def test_an_atomic_step_is_not_alone_any_more_when_another_begins_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a loss that the other step caused would count against it."""
    monkeypatch.setattr(quarantined, "HARMLESS_SECONDS", 0.2)
    has_seen = threading.Event()
    seen: list[bool] = []

    def body(ctx: StepContext) -> None:
        sell(ctx)
        assert has_seen.wait(PATIENCE)

    def look() -> None:
        seen.append(attempts(instance, "sell")[0].quarantined)
        has_seen.set()

    @workflow
    async def story(step: WorkflowStep) -> None:
        await asyncio.gather(step.do("sell", body, atomic=True), step.do("look", look))

    instance = start_alone(story)
    shifts.run_to_end(instance)
    assert seen == [False]
    assert (outcomes(instance, "sell"), sales(instance)) == (["complete"], [(1, "sold")])


def test_a_late_record_of_its_start_does_not_undo_what_an_atomic_step_has_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The journal says that it is not alone any more while the body commits its own end."""
    monkeypatch.setattr(quarantined, "HARMLESS_SECONDS", 0.2)
    runs, is_held = threading.Event(), threading.Event()

    def body(ctx: StepContext) -> None:
        sell(ctx)
        runs.set()
        assert is_held.wait(PATIENCE)

    def is_recorded() -> bool:
        try:
            return outcomes(instance, "sell") == ["complete"]
        finally:
            connection.close()

    def tells_of_sell(parameters: Any) -> bool:
        """Return whether this is the record that it runs on; that of the other step may come first."""
        return any(
            (row["step_seq"], row["status"]) == (1, "running") for row in json.loads(parameters["attempts"])
        )

    fetch = ShiftConnection.fetch

    async def fetch_late(
        connection: ShiftConnection, statement: str, parameters: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        if (
            statement in (flush_sql.FLUSH, flush_sql.FLUSH_STEPS)
            and runs.is_set()
            and not is_held.is_set()
            and tells_of_sell(parameters)
        ):
            is_held.set()
            while not await asyncio.to_thread(is_recorded):
                await asyncio.sleep(0.01)
        return await fetch(connection, statement, parameters)

    monkeypatch.setattr(ShiftConnection, "fetch", fetch_late)

    @workflow
    async def story(step: WorkflowStep) -> None:
        await asyncio.gather(step.do("sell", body, atomic=True), step.do("beside", bool))

    instance = start_alone(story)
    shifts.run_to_end(instance)
    assert is_held.is_set()
    assert (outcomes(instance, "sell"), sales(instance)) == (["complete"], [(1, "sold")])


def test_a_reusable_step_that_returns_something_else_leaves_nothing() -> None:
    @define_step(atomic=True)
    def sell_one(ctx: StepContext) -> int:
        sell(ctx)
        return "one"  # type: ignore[return-value]

    @workflow
    async def story(step: WorkflowStep) -> int:
        return await step.run(sell_one.using(name="sell"))

    instance = run_to_end(story.start())
    assert (instance.status, outcomes(instance, "sell"), sales(instance)) == ("errored", ["errored"], [])


def test_a_nested_step_is_refused() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        async def outer() -> None:
            await step.do("sell", sell, atomic=True)

        await step.do("outer", outer)

    instance = run_to_end(story.start())
    assert (instance.error["type"], "A nested step cannot be atomic" in instance.error["message"]) == (
        "StepConfigError",
        True,
    )
    assert (outcomes(instance, "outer"), sales(instance)) == (["errored"], [])


def test_what_the_body_starts_and_sends_takes_effect_with_its_commit() -> None:
    """Guarantee 19 inside a step"""
    listener = workflows["listen-for"].start(["sold"])

    def body(ctx: StepContext) -> str:
        started = workflows["tick"].start(id=f"tick-{ctx.attempt}")
        listener.send_event("sold", ctx.attempt)
        if ctx.attempt == 1:
            raise ValueError("after all")
        return started.id

    instance = run_to_end(start(body))
    assert instance.output == "tick-2"
    assert [one.id for one in Instance.objects.filter(workflow="tick")] == ["tick-2"]
    assert list(Event.objects.values_list("payload", flat=True)) == [2]
    run_to_end(listener)
    assert listener.output == [2]


# Where it is refused


def test_an_async_body_is_refused_at_the_call() -> None:
    caught: list[StepConfigError] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def body() -> None:
            raise AssertionError

        try:
            await step.do("sell", body, atomic=True)
        except StepConfigError as error:
            caught.append(error)

    instance = run_to_end(story.start())
    assert (instance.status, step_count(instance)) == ("complete", 0)
    assert str(caught[0]).startswith('Step "sell": "atomic" is True. It needs a sync function')


def test_an_awaitable_from_a_sync_body_is_refused() -> None:
    async def later() -> None:
        raise AssertionError

    def body(ctx: StepContext) -> Any:
        sell(ctx)
        return later()

    instance = run_to_end(start(body))
    assert (outcomes(instance, "sell"), instance.error["type"]) == (["errored"], "StepConfigError")
    assert "It needs a sync function" in instance.error["message"]
    assert sales(instance) == []


@pytest.fixture
def other_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same database under another name, which is another connection."""

    def ensure_connection(self: BaseDatabaseWrapper) -> None:
        if self.connection is None:
            self.connect()  # the test's guard does not know another database, and would refuse it

    monkeypatch.setitem(connections.settings, "other", connections.settings["default"])
    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", ensure_connection)


def test_writing_to_a_second_database_is_refused_and_reading_it_is_not(other_database: None) -> None:
    def body(ctx: StepContext) -> None:
        sell(ctx)
        with connections["other"].cursor() as cursor:
            cursor.execute("SELECT 1")
            cursor.execute("INSERT INTO shop_sale VALUES ('elsewhere', 1, 'sold')")

    instance = run_to_end(start(body))
    assert (outcomes(instance, "sell"), instance.error["type"]) == (["errored"], "StepConfigError")
    assert 'but its body writes to "other". Do that in a step of its own.' in instance.error["message"]
    assert sales(instance) == []


def test_a_stricter_isolation_is_refused() -> None:
    execute("ALTER ROLE CURRENT_USER SET default_transaction_isolation = serializable")
    try:
        instance = shifts.run_to_end(start(sell))
    finally:
        execute("ALTER ROLE CURRENT_USER RESET default_transaction_isolation")
    assert (outcomes(instance, "sell"), instance.error["type"]) == (["errored"], "StepConfigError")
    assert 'is set to the isolation level "serializable"' in instance.error["message"]


def step_count(instance: Instance) -> int:
    return int(instance.steps.count())
