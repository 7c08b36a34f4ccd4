"""The connection breaks around an atomic body or rollback: it has written once, even if no commit is answered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection, transaction

from engine import RollbackContext, StepContext, WorkflowStep, workflow
from engine.declare.registry import Workflow
from engine.models import Instance
from tests.faults.conftest import CALLER
from tests.faults.points import DROPS, Breaker, Watcher, violations
from tests.faults.proxy import Fault, Proxy
from tests.faults.wire import Request
from tests.records import attempts, outcomes
from tests.shifts import running_shift, wait_for, wait_until
from tests.shop import open_shop, sales, sell

pytestmark = pytest.mark.second_tier

STEPS = ["sell", "sell more"]


@pytest.fixture(autouse=True)
def story(proxy: Proxy) -> Iterator[Workflow[Any, Any]]:
    def body(ctx: StepContext) -> int:
        sell(ctx, ctx.name)
        return ctx.attempt

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        return [
            await step.do("sell", body, atomic=True, delay=0),
            await step.do("sell more", body, atomic=True, delay=0),
        ]

    with open_shop():
        yield story
        assert violations() == []


def play(story: Workflow[Any, Any]) -> Instance:
    instance = story.start()
    with running_shift():
        wait_for(instance)
    assert instance.status == "complete"
    return instance


def sold(instance: Instance) -> list[tuple[int, str]]:
    return sorted(sales(instance), key=lambda sale: STEPS.index(sale[1]))


def test_a_body_has_written_once_whichever_of_its_statements_the_connection_breaks_at(
    proxy: Proxy, story: Workflow[Any, Any]
) -> None:
    undisturbed = proxy.decide = Watcher(CALLER)
    play(story)
    count = undisturbed.seen.index("COMMIT") + 1
    assert count > len(["connect", "BEGIN", "ENTER", "INSERT", "CHECKPOINT"])
    first = {}
    for number in range(1, count + 1):
        for fault in DROPS:
            proxy.decide = watcher = Watcher(CALLER, number, fault)
            instance = play(story)
            told = undisturbed.seen[: number + 1], fault
            assert len(watcher.seen) > number, told
            assert sold(instance) == list(zip(instance.output, STEPS, strict=True)), told
            first[number, fault] = outcomes(instance, "sell")
    # Only a commit that has been made leaves nothing to do again.
    assert [point for point, ended in first.items() if ended == ["complete"]] == [(count, Fault.DROP_AFTER)]
    assert all(ended[-1] == "complete" for ended in first.values())


def test_what_became_of_a_commit_is_asked_until_the_database_answers(
    proxy: Proxy, story: Workflow[Any, Any]
) -> None:
    refused = list[str]()

    def decide(request: Request) -> Fault:
        if request.application != CALLER or len(refused) > 3:
            return Fault.NONE
        if refused or request.name == "COMMIT":
            refused.append(request.name)
            return Fault.DROP_AFTER
        return Fault.NONE

    proxy.decide = decide
    instance = play(story)
    assert refused == ["COMMIT", "connect", "connect", "connect"]
    assert outcomes(instance, "sell") == ["complete"]
    assert sold(instance) == [(1, "sell"), (1, "sell more")]


def test_a_commit_that_is_still_on_its_way_is_ended_before_the_row_is_asked(
    proxy: Proxy, story: Workflow[Any, Any]
) -> None:
    """The client's end breaks while the server has not even seen the COMMIT"""
    is_held = list[str]()

    def decide(request: Request) -> Fault:
        if request.application == CALLER and request.name == "COMMIT" and not is_held:
            is_held.append(request.name)
            return Fault.HOLD
        return Fault.NONE

    proxy.decide = decide
    instance = story.start()
    with running_shift():
        wait_until(lambda: bool(is_held))
        proxy.hang_up(CALLER)
        wait_for(instance)
        proxy.release()
    assert outcomes(instance, "sell") == ["errored", "complete"]
    assert sold(instance) == [(2, "sell"), (1, "sell more")]


def test_a_start_whose_answer_was_lost_is_not_written_over_a_body_that_is_through(
    proxy: Proxy, story: Workflow[Any, Any]
) -> None:
    """The journal writes again what it does not know to be written; the body may be quicker"""
    for number in (1, 2):
        proxy.decide = breaker = Breaker(("reprise journal test", "FLUSH", number), Fault.DROP_AFTER)
        instance = play(story)
        assert breaker.is_hit
        assert (outcomes(instance, "sell"), outcomes(instance, "sell more")) == (["complete"], ["complete"])
        assert sold(instance) == [(1, "sell"), (1, "sell more")]


def test_what_is_to_happen_on_commit_happens_once_where_the_commit_was_not_answered(proxy: Proxy) -> None:
    """Also the rest, where one of them fails and is said to be robust"""
    called: list[str] = []

    def body(ctx: StepContext) -> None:
        sell(ctx)
        transaction.on_commit(lambda: called.append("first"))
        with suppress(LookupError), transaction.atomic():
            transaction.on_commit(lambda: called.append("undone"))
            raise LookupError
        transaction.on_commit(lambda: 1 / 0, robust=True)
        transaction.on_commit(lambda: called.append(f"second, of {sales_outside()}"))

    def sales_outside() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM shop_sale")
            return int(cursor.fetchone()[0])

    @workflow
    async def tells(step: WorkflowStep) -> None:
        await step.do("sell", body, atomic=True, delay=0)

    proxy.decide = breaker = Breaker((CALLER, "COMMIT", 1), Fault.DROP_AFTER)
    instance = play(tells)
    assert breaker.is_hit
    assert (outcomes(instance, "sell"), sales(instance)) == (["complete"], [(1, "sold")])
    assert called == ["first", "second, of 1"]


def undo(ctx: RollbackContext) -> None:
    sell(ctx, f"undone {ctx.name}")


@pytest.fixture
def undone(proxy: Proxy) -> Workflow[Any, Any]:
    @workflow
    async def undone(step: WorkflowStep) -> None:
        for name in STEPS:
            await step.do(name, lambda: 1, rollback=undo, rollback_options={"atomic": True, "delay": 0})
        await step.fail("sold out")

    return undone


def roll_back(declared: Workflow[Any, Any]) -> Instance:
    instance = declared.start()
    with running_shift():
        wait_for(instance)
    assert (instance.status, instance.rollback) == ("errored", "complete")
    return instance


def undoing(instance: Instance, name: str) -> list[str]:
    return [one.status for one in attempts(instance, name) if one.phase == "rollback"]


def test_a_rollback_has_written_once_whichever_of_its_statements_the_connection_breaks_at(
    proxy: Proxy, undone: Workflow[Any, Any]
) -> None:
    undisturbed = proxy.decide = Watcher(CALLER)
    roll_back(undone)
    count = undisturbed.seen.index("COMMIT") + 1
    assert count > len(["connect", "BEGIN", "ENTER", "INSERT", "CHECKPOINT"])
    last = {}
    for number in range(1, count + 1):
        for fault in DROPS:
            proxy.decide = watcher = Watcher(CALLER, number, fault)
            instance = roll_back(undone)
            told = undisturbed.seen[: number + 1], fault
            assert len(watcher.seen) >= number, told
            assert sorted(note for _, note in sales(instance)) == ["undone sell", "undone sell more"], told
            last[number, fault] = undoing(instance, "sell more")  # it is undone first
    # Only a commit that has been made leaves nothing to do again.
    assert [point for point, ended in last.items() if ended == ["complete"]] == [(count, Fault.DROP_AFTER)]
    assert all(ended[-1] == "complete" for ended in last.values())


def test_the_start_of_a_rollback_whose_answer_was_lost_is_not_written_over_its_end(
    proxy: Proxy, undone: Workflow[Any, Any]
) -> None:
    proxy.decide = undisturbed = Watcher("reprise journal test")
    roll_back(undone)
    flushes = undisturbed.seen.count("FLUSH")
    assert flushes > 4
    for number in range(1, flushes + 1):
        proxy.decide = breaker = Breaker(("reprise journal test", "FLUSH", number), Fault.DROP_AFTER)
        instance = roll_back(undone)
        assert breaker.is_hit
        assert [undoing(instance, name) for name in STEPS] == [["complete"], ["complete"]], number
        assert sorted(note for _, note in sales(instance)) == ["undone sell", "undone sell more"], number
