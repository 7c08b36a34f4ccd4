"""What the end of one instance means for others, whoever holds which row at the time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection, transaction

from engine import WorkflowStep, branch, workflow
from engine.models import Instance, Step, Waiter
from engine.steer import relations
from engine.steer.deletion import remove
from engine.worker import claims
from engine.worker.database import flush_sql, history_sql
from engine.worker.database.connect import SESSION
from tests.integration.plants import child_of, waiting
from tests.integration.rows import NOW, leased, row_of, step_of
from tests.integration.sessions import in_background, until_blocked
from tests.records import statuses
from tests.shifts import running_shift, wait_for, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

GATE = 4711
DONE: dict[str, Any] = {
    "status": "complete",
    "finished_at": NOW,
    "wake_at": None,
    "output": 1,
    "notify_pending": True,
}


def ask(statement: str, **values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"only": None, "limit": 100, **values})
        return list(cursor.fetchall())


def gated(statement: str, table: str) -> str:
    """Let the statement wait between its look at the database and its locks."""
    assert table in statement
    gate = f"{table.rstrip()} CROSS JOIN (SELECT pg_advisory_xact_lock_shared({GATE})) AS gate"
    return statement.replace(table, gate, 1)


def shut_the_gate() -> None:
    ask(f"SELECT pg_advisory_lock({GATE})")


def open_the_gate() -> None:
    ask(f"SELECT pg_advisory_unlock({GATE})")


def parked(**values: Any) -> Instance:
    parent = waiting(waiting_for="child", id="parent", **values)
    step_of(parent, kind="child", status="waiting", options={"workflow": "tick", "id": "child-1"})
    return parent


# Telling


def test_a_parked_parent_is_woken_once() -> None:
    parent = parked()
    child = child_of(parent, **DONE)
    ask(relations.SETTLE)
    assert (parent.refresh().signals, parent.wake_at is not None, child.refresh().notify_pending) == (
        1,
        True,
        False,
    )
    assert ask(relations.SETTLE) == []


def test_a_parent_that_a_worker_holds_is_signalled_and_keeps_its_lease() -> None:
    parent = leased(parked())
    lease = parent.wake_at
    child_of(parent, **DONE)
    ask(relations.SETTLE)
    assert (parent.refresh().signals, parent.wake_at) == (1, lease)


def test_an_end_is_owed_while_somebody_holds_the_parent() -> None:
    """The one order of locks: the parent is parking when its child ends. The other is in test_replay_races."""
    parent = parked()
    child = child_of(parent, **DONE)
    with transaction.atomic():
        Instance.objects.select_for_update(no_key=True).get(key=parent.key)
        assert in_background(lambda: ask(relations.SETTLE))() == []
        assert (parent.refresh().signals, child.refresh().notify_pending) == (0, True)
    ask(relations.SETTLE)
    assert (parent.refresh().signals, child.refresh().notify_pending) == (1, False)


def test_whoever_waits_is_told_once_unless_somebody_holds_it() -> None:
    other, waiter = row_of(id="other", **DONE), parked()
    Waiter.objects.create(waiter=waiter, generation=1, seq=1, instance=other)
    with transaction.atomic():
        Instance.objects.select_for_update(no_key=True).get(key=waiter.key)
        in_background(lambda: ask(relations.TELL_WAITERS))()
    assert (waiter.refresh().signals, Waiter.objects.get().told_at) == (0, None)
    for _ in range(2):
        ask(relations.TELL_WAITERS)
    assert (waiter.refresh().signals, waiter.wake_at is not None, Waiter.objects.get().told_at) == (
        1,
        True,
        NOW,
    )


def test_what_is_gone_is_told_and_forgotten() -> None:
    other, waiter = row_of(id="other"), parked()
    Waiter.objects.create(waiter=waiter, generation=1, seq=1, instance=other)
    remove([other.key])
    ask(relations.TELL_WAITERS)
    assert (waiter.refresh().signals, waiter.wake_at is not None, Waiter.objects.count()) == (1, True, 0)


def test_who_does_not_wait_any_more_is_forgotten() -> None:
    other, waiter = row_of(id="other"), parked()
    Step.objects.filter(instance=waiter).update(status="errored", finished_at=NOW)
    Waiter.objects.create(waiter=waiter, generation=1, seq=1, instance=other)
    ask(relations.TELL_WAITERS)
    assert (waiter.refresh().signals, Waiter.objects.count()) == (0, 0)


# Ending


def test_a_step_that_is_cancelled_while_notices_are_sent_is_not_forgotten() -> None:
    """The statement sees the mark of the second cancellation, and not yet the cancellation."""
    parent = leased(row_of(id="parent", notify_pending=True))
    step_of(parent, kind="child", status="waiting")
    child = child_of(parent)
    shut_the_gate()
    answer = in_background(lambda: ask(gated(relations.SETTLE, "FROM engine_instance i\n")))
    until_blocked()
    with transaction.atomic():
        Step.objects.filter(instance=parent).update(status="cancelled", finished_at=NOW)
        Instance.objects.filter(key=parent.key).update(notify_pending=True)
    open_the_gate()
    answer()
    assert parent.refresh().notify_pending
    relations.settle(parent.key)
    assert (child.refresh().status, parent.refresh().notify_pending) == ("terminated", False)


def test_what_a_child_recorded_while_it_was_to_end_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its worker's last flush came after the look for orphans, and before they were locked."""
    parent = row_of(id="parent", status="terminated", finished_at=NOW, wake_at=None, notify_pending=True)
    step_of(parent, kind="child", status="cancelled", finished_at=NOW)
    child = leased(child_of(parent))
    monkeypatch.setattr(
        relations, "ORPHANS", gated(relations.ORPHANS, "engine_instance parent JOIN engine_instance child")
    )
    shut_the_gate()

    def settle() -> None:
        with transaction.atomic():
            relations.settle(parent.key)

    answer = in_background(settle)
    until_blocked()
    step_of(child)
    open_the_gate()
    assert answer() is None
    assert (child.refresh().status, child.owner, child.fence) == ("terminated", None, 1)
    assert statuses(child) == {"s1": "cancelled"}


def test_a_child_that_somebody_holds_ends_later() -> None:
    parent = row_of(id="parent", status="terminated", finished_at=NOW, wake_at=None, notify_pending=True)
    step_of(parent, kind="child", status="cancelled", finished_at=NOW)
    child = child_of(parent, workflow="unserved")  # or it might end by itself before
    with transaction.atomic():
        Instance.objects.select_for_update(no_key=True).get(key=child.key)
        in_background(lambda: relations.settle(parent.key))()
        assert (child.refresh().status, parent.refresh().notify_pending) == ("queued", True)
    with running_shift():
        wait_until(lambda: not parent.refresh().notify_pending, what="the notice being sent")
    assert child.refresh().status == "terminated"


# All together


def test_no_end_is_lost_without_a_sweep(monkeypatch: pytest.MonkeyPatch, own_registry: None) -> None:
    """Children that end while their parents record, park and wake; a wake-up that is lost would be lost for good."""
    monkeypatch.setattr(claims, "SWEEP_SECONDS", 3600.0)

    @workflow
    async def quick(step: WorkflowStep, params: int) -> int:
        return params if params % 2 else await step.do("some", lambda: params)

    @workflow
    async def story(step: WorkflowStep) -> int:
        total = sum(await step.parallel("first", *(branch(quick, n) for n in range(4))))
        total += await step.run_workflow("second", quick, 4)
        handle = await step.spawn("third", quick, 5)
        return total + int((await step.wait_for_instance("third", handle)).output)

    with running_shift():
        wait_for(story.start(id="first"))  # the first sweep is over
        found = [wait_for(one).output for one in story.start_many([{}] * 40).created]
        wait_until(
            lambda: not Instance.objects.filter(notify_pending=True).exists(), what="all being settled"
        )
    assert found == [15] * 40


# Plans


@pytest.mark.parametrize("name", ["RELATIONS", "FLUSH", "FLUSH_WITH_OTHERS", "SETTLE", "ORPHANS"])
def test_a_plan_made_for_empty_tables_reads_few_rows_of_full_ones(name: str) -> None:
    """Sessions of workers keep theirs: every row is found by a key, or by an index of few."""
    [home] = [module for module in (history_sql, flush_sql, relations) if hasattr(module, name)]
    statement = str(getattr(home, name)).replace("%(large)b", "'{}'")
    named = dict.fromkeys(re.findall(r"%\((\w+)\)", statement), "[]")
    values = named | {"worker_id": 1, "key": 1, "generation": 1, "only": None, "limit": 1}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE engine_instance, engine_step, engine_waiter CASCADE"
        )  # earlier tests left pages
        cursor.execute(SESSION)
        cursor.execute(f"EXPLAIN {statement}", values)
        lines = "\n".join(line for (line,) in cursor.fetchall())
        transaction.set_rollback(True)
    used = set(re.findall(r"(?:using|Index Scan on) (engine_instance_\w+)", lines))
    assert used <= {
        "engine_instance_pkey",
        "engine_instance_id",
        "engine_instance_notify_pending",
        "engine_instance_children",
    }
    assert "Seq Scan" not in lines
