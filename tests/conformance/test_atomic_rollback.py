"""Atomic rollbacks: what one writes and that its step is undone are one transaction (guarantees 15 and 18)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, connections, transaction

from engine import (
    NonRetryableError,
    RollbackContext,
    StepConfigError,
    StepContext,
    WorkflowStep,
    define_step,
    workflow,
)
from engine.models import Attempt, Instance, Step
from engine.values.errors import DeclarationError
from engine.worker import shift
from tests import shifts
from tests.faults.points import violations
from tests.guards import unguarded
from tests.records import crash, step
from tests.shifts import witness
from tests.shop import execute, open_shop, sales, sell
from tests.stories import run_to_end


@pytest.fixture(autouse=True)
def _shop(_story: None) -> Iterator[None]:
    with open_shop():
        yield
        assert violations() == []


def book(ctx: StepContext) -> str:
    sell(ctx, "booked")
    return "booking 7"


def refund(ctx: RollbackContext) -> None:
    sell(ctx, f"refund of {ctx.output}")


def refund_at_second_try(ctx: RollbackContext) -> None:
    refund(ctx)
    if ctx.attempt == 1:
        raise ConnectionError("the bank is away")


def start(rollback: Callable[..., Any], body: Callable[..., Any] = book, **options: Any) -> Instance:
    """Start a workflow that fails after one step, which is atomic by default."""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("book", body, rollback=rollback, **{"atomic": True, "delay": 0, **options})
        await step.fail("sold out")

    return story.start()


def undoing(instance: Instance) -> list[str]:
    """Return how each attempt at a rollback ended."""
    made = Attempt.objects.filter(instance=instance, phase="rollback").order_by("step_seq", "number")
    return list(made.values_list("status", flat=True))


def error_of(instance: Instance, number: int = 1) -> dict[str, Any]:
    error: dict[str, Any] = Attempt.objects.get(instance=instance, phase="rollback", number=number).error
    return error


def rows(query: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


def test_what_a_rollback_writes_and_its_completion_are_one_transaction() -> None:
    instance = run_to_end(start(refund))
    assert (instance.rollback, instance.error["message"]) == ("complete", "sold out")
    assert sales(instance) == [(1, "booked"), (1, "refund of booking 7")]
    row = step(instance, "book")
    assert (row.rollback, row.wake_at, row.options["rollback"]["atomic"]) == ("complete", None, True)
    assert undoing(instance) == ["complete"]


NOTE_WRITES = """
    CREATE TABLE written (what text, xid xid8);
    CREATE FUNCTION note_write() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO written VALUES (TG_TABLE_NAME, pg_current_xact_id());
        RETURN NULL;
    END $$;
    CREATE TRIGGER noted AFTER INSERT ON shop_sale FOR EACH ROW
        WHEN (NEW.note LIKE 'refund%') EXECUTE FUNCTION note_write();
    CREATE TRIGGER noted AFTER INSERT OR UPDATE ON engine_attempt FOR EACH ROW
        WHEN (NEW.phase = 'rollback' AND NEW.status = 'complete') EXECUTE FUNCTION note_write();
    CREATE TRIGGER noted AFTER UPDATE ON engine_step FOR EACH ROW
        WHEN (NEW.rollback = 'complete') EXECUTE FUNCTION note_write();
"""


@pytest.fixture
def first_writes() -> Iterator[Callable[[], list[tuple[str, int]]]]:
    """Return the first transaction that wrote a refund, and those that marked its step: the worker marks it again."""
    execute(NOTE_WRITES)
    query = "SELECT what, min(xid::text::bigint) FROM written GROUP BY what ORDER BY what"
    try:
        yield lambda: rows(query)
    finally:
        execute("DROP FUNCTION note_write() CASCADE; DROP TABLE written")


def test_it_is_committed_with_the_mark_that_its_step_is_undone(
    first_writes: Callable[[], list[tuple[str, int]]],
) -> None:
    run_to_end(start(refund))
    found = first_writes()
    assert [what for what, _ in found] == ["engine_attempt", "engine_step", "shop_sale"]
    assert len({xid for _, xid in found}) == 1


def test_what_a_failed_attempt_wrote_is_gone() -> None:
    instance = run_to_end(start(refund_at_second_try, rollback_options={"delay": 0}))
    assert (instance.rollback, undoing(instance)) == ("complete", ["errored", "complete"])
    assert sorted(sales(instance)) == [(1, "booked"), (2, "refund of booking 7")]


def test_one_that_fails_for_good_leaves_nothing_and_may_be_retried() -> None:
    is_away = True

    def undo(ctx: RollbackContext) -> None:
        refund(ctx)
        if is_away:
            raise NonRetryableError("the bank is away")

    instance = run_to_end(start(undo))
    assert (instance.rollback, undoing(instance), sales(instance)) == ("failed", ["errored"], [(1, "booked")])
    is_away = False
    instance.retry_rollback()
    run_to_end(instance)
    assert (instance.rollback, undoing(instance)) == ("complete", ["errored", "complete"])
    assert sorted(sales(instance)) == [(1, "booked"), (2, "refund of booking 7")]


def test_a_step_that_never_completed_is_undone_without_an_output() -> None:
    def fail(ctx: StepContext) -> str:
        sell(ctx, "booked")
        raise ValueError("sold out")

    instance = run_to_end(start(refund, fail, max_attempts=2))
    assert (instance.error["message"], instance.rollback) == ("sold out", "complete")
    assert sales(instance) == [(1, "refund of None")]


def test_a_rollback_that_spoils_its_transaction_is_told_so_and_tried_again() -> None:
    def undo(ctx: RollbackContext) -> None:
        refund(ctx)
        if ctx.attempt == 1:
            execute("ROLLBACK")

    instance = run_to_end(start(undo, rollback_options={"delay": 0}))
    assert (undoing(instance), error_of(instance)["type"]) == (["errored", "complete"], "AtomicStepError")
    assert error_of(instance)["message"].startswith(
        'The transaction of the rollback of step "book" was rolled back. Its body ended it'
    )
    assert sorted(sales(instance)) == [(1, "booked"), (2, "refund of booking 7")]


def test_items_of_a_map_are_undone_atomically_each() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        def one(item: int, index: int, ctx: StepContext) -> int:
            sell(ctx, f"sold {item}")
            return item

        await step.map(
            "book", [1, 2], one, atomic=True, rollback=refund_at_second_try, rollback_options={"delay": 0}
        )
        await step.fail("sold out")

    instance = run_to_end(story.start())
    assert (instance.rollback, undoing(instance)) == ("complete", ["errored", "complete"] * 2)
    assert sorted(sales(instance)) == [
        (1, "sold 1"),
        (1, "sold 2"),
        (2, "refund of 1"),
        (2, "refund of 2"),
    ]


# Which rollbacks are atomic


def recorded(instance: Instance) -> bool:
    options: dict[str, Any] = step(instance, "book").options["rollback"]
    return options.get("atomic", False)


async def refund_async(ctx: RollbackContext) -> None:
    """Undo nothing."""


@pytest.mark.parametrize(
    ("options", "rollback", "expected"),
    [
        ({}, refund, True),
        ({"rollback_options": {"max_attempts": 2}}, refund, True),
        ({"rollback_options": {"atomic": False}}, refund, False),
        ({"atomic": False}, refund, False),
        ({"atomic": False, "rollback_options": {"atomic": True}}, refund, True),
        ({}, refund_async, False),
    ],
    ids=["of an atomic step", "with options", "said not to be", "of a plain step", "said to be", "async"],
)
def test_a_rollback_is_atomic_where_both_can_be_and_nothing_else_is_said(
    options: dict[str, Any], rollback: Callable[..., Any], expected: bool
) -> None:
    instance = run_to_end(start(rollback, **options))
    assert (instance.rollback, recorded(instance)) == ("complete", expected)


def test_one_that_is_not_leaves_what_a_failed_attempt_wrote() -> None:
    instance = run_to_end(start(refund_at_second_try, rollback_options={"atomic": False, "delay": 0}))
    assert sorted(sales(instance)) == [
        (1, "booked"),
        (1, "refund of booking 7"),
        (2, "refund of booking 7"),
    ]


def test_that_of_a_reusable_step_may_say_it_where_it_is_declared() -> None:
    @define_step(name="book", atomic=True)
    def book_van(ctx: StepContext) -> str:
        return book(ctx)

    @book_van.rollback
    def cancel_van(ctx: RollbackContext) -> None:
        refund(ctx)

    @define_step(name="book")
    def book_bus(ctx: StepContext) -> str:
        return book(ctx)

    @book_bus.rollback(atomic=True)
    def cancel_bus(ctx: RollbackContext) -> None:
        refund(ctx)

    def declare(one: Any) -> Any:
        @workflow(name=one.fn.__name__.replace("_", "-"))
        async def story(step: WorkflowStep) -> None:
            await step.run(one)
            await step.fail("no road")

        return story

    made = [declare(one) for one in (book_van, book_bus)]
    assert [recorded(run_to_end(one.start())) for one in made] == [True, True]


def test_an_async_rollback_that_is_said_to_be_atomic_is_refused_where_it_is_said() -> None:
    caught: list[StepConfigError] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        try:
            await step.do("book", book, rollback=refund_async, rollback_options={"atomic": True})
        except StepConfigError as error:
            caught.append(error)

    run_to_end(story.start())
    assert "An atomic rollback needs a sync function" in str(caught[0])
    with pytest.raises(DeclarationError, match="An atomic rollback needs a sync function"):
        define_step("van", rollback=refund_async, rollback_options={"atomic": True})(book)


def test_what_was_recorded_when_the_step_began_holds() -> None:
    """A step that began before rollbacks could be atomic"""
    instance = start(refund_at_second_try, rollback_options={"delay": 0})
    Step.objects.create(
        instance=instance,
        generation=1,
        seq=1,
        kind="do",
        name="book",
        count=1,
        status="complete",
        delivery=1,
        attempts=1,
        options={"max_attempts": 5, "atomic": True, "rollback": {"max_attempts": 5, "delay": 0}},
        output="booking 7",
        started_at="2026-01-01T00:00:00Z",
        finished_at="2026-01-01T00:00:00Z",
    )
    with unguarded("engine_attempt"):  # it has been begun before
        Attempt.objects.create(
            instance=instance,
            generation=1,
            step_seq=1,
            number=1,
            status="complete",
            worker="dead",
            started_at="2026-01-01T00:00:00Z",
            finished_at="2026-01-01T00:00:00Z",
        )
    Instance.objects.filter(key=instance.key).update(fence=1, started_at="2026-01-01T00:00:00Z")
    run_to_end(instance)
    assert sorted(sales(instance)) == [(1, "refund of booking 7"), (2, "refund of booking 7")]


# Races


class Gate:
    """Where the first attempt at a rollback waits until the test lets it continue."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def undo(self, ctx: RollbackContext) -> None:
        refund(ctx)
        if ctx.attempt == 1:
            self.reached.set()
            assert self.opened.wait(60)


@pytest.fixture
def gate() -> Iterator[Gate]:
    one = Gate()
    yield one
    one.opened.set()


def test_one_whose_instance_was_taken_over_commits_nothing(gate: Gate) -> None:
    instance = start(gate.undo)
    with shifts.running_shift():
        assert gate.reached.wait(60)
        crash()
        shifts.wait_until(lambda: undoing(instance)[:1] == ["lost"])
        gate.opened.set()
        shifts.wait_for(instance)
    assert (instance.rollback, undoing(instance)) == ("complete", ["lost", "complete"])
    assert sorted(sales(instance)) == [(1, "booked"), (2, "refund of booking 7")]


def test_one_that_timed_out_leaves_no_lock_and_nothing_written_although_its_thread_goes_on(
    gate: Gate,
) -> None:
    instance = start(gate.undo, rollback_options={"timeout": 0.2, "delay": 0})
    with shifts.running_shift():
        shifts.wait_for(instance)
        gate.opened.set()
    assert (instance.rollback, undoing(instance)) == ("complete", ["timed_out", "complete"])
    assert sorted(sales(instance)) == [(1, "booked"), (2, "refund of booking 7")]


def test_a_worker_that_drains_cuts_it_off_and_the_next_one_runs_it(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shift, "GRACE_SECONDS", 0.1)
    instance = start(gate.undo)
    with shifts.running_shift():
        assert gate.reached.wait(60)
    gate.opened.set()
    assert (instance.refresh().status, sales(instance)) == ("queued", [(1, "booked")])
    shifts.run_to_end(instance)
    assert (instance.rollback, undoing(instance)) == ("complete", ["cancelled", "complete"])
    assert sorted(sales(instance)) == [(1, "booked"), (2, "refund of booking 7")]


def test_paused_amid_it_it_is_committed_and_not_done_again(gate: Gate) -> None:
    instance, look = start(gate.undo), witness()
    with shifts.running_shift():
        assert gate.reached.wait(60)
        instance.pause()
        look()
        gate.opened.set()
        shifts.wait_for(instance, "paused")
        assert sorted(sales(instance)) == [(1, "booked"), (1, "refund of booking 7")]
        instance.resume()
        shifts.wait_for(instance)
    assert (instance.rollback, undoing(instance)) == ("complete", ["complete"])
    assert sorted(sales(instance)) == [(1, "booked"), (1, "refund of booking 7")]


def test_nothing_is_held_open_in_other_sessions_after_all(gate: Gate) -> None:
    gate.opened.set()
    shifts.run_to_end(start(gate.undo))
    with transaction.atomic():
        execute("LOCK TABLE shop_sale IN ACCESS EXCLUSIVE MODE NOWAIT")
    connections.close_all()
