"""Claims of workflows with a limit: which instances get the slots, how two claims affect each other, what it costs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from engine.models import Instance
from engine.worker.database import claim_sql
from engine.worker.database.limits import Limits
from engine.worker.database.shift_connection import ShiftConnection
from tests.integration.rows import leased, row_of
from tests.integration.test_claim_plan import buffers, explain, scans

pytestmark = pytest.mark.usefixtures("engine_db")

BACKLOG = 10_000

FILL = """
    INSERT INTO engine_instance (workflow, id, status, params, wake_at, started_at, owner, fence)
    SELECT 'full', 'i' || n, CASE WHEN n <= 5 THEN 'running' ELSE 'queued' END, '{}',
        now() + (CASE WHEN n <= 5 THEN 30 ELSE -n END) * interval '1 second',
        CASE WHEN n %% 2 = 1 THEN now() END, CASE WHEN n <= 5 THEN 7 END, 1
    FROM generate_series(1, %s) AS n
"""


def due(
    id: str, *, workflow: str = "one", ago: float = 1, has_begun: bool = False, **values: Any
) -> Instance:
    """Write an instance that has been due for some seconds."""
    wake_at = timezone.now() - timedelta(seconds=ago)
    began = {"started_at": wake_at} if has_begun else {}
    return row_of(workflow=workflow, id=id, wake_at=wake_at, **began, **values)


async def claim(
    limits: Limits, connection: ShiftConnection, limit: int = 64, *, quarantined: bool = False
) -> list[str]:
    """Claim, and return the ids."""
    rows = await limits.claim(
        connection, quarantined=quarantined, limit=limit, worker_id=1, lease=30, ahead=0, late_new=0
    )
    return sorted(row[2] for row in rows)


def on_connections(act: Callable[..., Awaitable[Any]], *, count: int = 1) -> Any:
    """Run it with some connections of shifts."""

    async def work() -> Any:
        connections = [
            await ShiftConnection.open(f"test {number}", is_durable=False) for number in range(count)
        ]
        try:
            return await act(*connections)
        finally:
            for connection in connections:
                await connection.close()

    return asyncio.run(work())


def serve(limits: dict[str, int | None]) -> Limits:
    return Limits(limits, {name: most for name, most in limits.items() if most is not None})


def claimed(limits: dict[str, int | None], *, limit: int = 64, quarantined: bool = False) -> list[str]:
    return on_connections(lambda connection: claim(serve(limits), connection, limit, quarantined=quarantined))


def test_woken_ones_go_before_new_ones_and_each_oldest_first() -> None:
    for name, ago, has_begun in (
        ("old", 9, False),
        ("new", 2, False),
        ("woken", 1, True),
        ("first", 5, True),
    ):
        due(name, ago=ago, has_begun=has_begun)
    for expected in (["first"], ["woken"], ["old"], ["new"], []):
        assert claimed({"one": 4}, limit=1) == expected


def test_places_that_are_held_count_whoever_holds_them() -> None:
    leased(due("held"))
    leased(due("pausing"), status="waiting_for_pause")
    for name in "abc":
        due(name)
    assert claimed({"one": 2}) == []
    assert len(claimed({"one": 4})) == 2
    assert claimed({"one": 3}) == []  # it was lowered: those that run go on, and nothing comes


def test_of_several_workflows_one_each_is_taken_in_turns() -> None:
    for name in ("a1", "a2", "a3"):
        due(name, workflow="a", ago=9)
    due("b1", workflow="b", ago=1)
    assert claimed({"a": 5, "b": 5}, limit=2) == ["a1", "b1"]


def test_workflows_without_a_limit_take_turns_with_those_that_have_one() -> None:
    """Together, however many they are, and the oldest of them first: neither kind takes all slots."""
    for name, workflow, ago in (
        ("a1", "a", 9),
        ("a2", "a", 8),
        ("b1", "b", 3),
        ("c1", "c", 2),
        ("c2", "c", 4),
    ):
        due(name, workflow=workflow, ago=ago)
    served = {"a": 5, "b": None, "c": None}
    assert claimed(served, limit=3) == ["a1", "a2", "c2"]
    assert claimed(served) == ["b1", "c1"]


def test_where_no_place_is_free_those_without_a_limit_are_claimed() -> None:
    leased(due("held"))
    due("full", has_begun=True)
    for name in "ab":
        due(name, workflow="free", quarantined=name == "b")
    served = {"one": 1, "free": None}
    assert claimed(served) == ["a"]
    assert claimed(served, quarantined=True) == ["b"]


def test_a_place_is_kept_for_one_that_must_run_alone() -> None:
    due("suspect", quarantined=True, has_begun=True)
    due("new", ago=9)
    assert claimed({"one": 1}) == []
    assert claimed({"one": 2}) == ["new"]
    assert claimed({"one": 1}, quarantined=True) == []
    assert claimed({"one": 2}, quarantined=True) == ["suspect"]
    due("another", quarantined=True)
    due("newer")
    assert claimed({"one": 3}) == ["newer"]  # the suspect has the place that was kept


def test_who_claims_while_another_one_does_takes_nothing_and_does_not_wait() -> None:
    """Whatever the other one sees: its claim counts for everybody else only when it is committed."""
    for name in "abc":
        due(name)
    limits = serve({"one": 2})

    async def race(first: ShiftConnection, second: ShiftConnection) -> None:
        async with first.transaction():
            await first.execute(claim_sql.LOCK, {"limited": ["one"]})
            assert await claim(limits, second) == []
            values = {"limit": 1, "worker_id": 2, "lease": 30, "ahead": 0, "late_new": 0}
            await first.execute(claim_sql.CLAIM_WITH_LIMITS, limits.parameters() | values)
            assert await claim(limits, second) == []
        assert len(await claim(limits, second)) == 1
        assert await claim(limits, second) == []

    on_connections(race, count=2)
    assert Instance.objects.filter(owner__isnull=False).count() == 2


def test_who_is_stopped_in_the_middle_of_a_claim_does_not_keep_the_others_out() -> None:
    [found] = on_connections(_timeout_within_a_claim)
    assert found == "5s"


async def _timeout_within_a_claim(connection: ShiftConnection) -> Any:
    async with connection.transaction():
        await connection.execute(claim_sql.LOCK, {"limited": ["one"]})
        return await (await connection.execute("SHOW idle_in_transaction_session_timeout")).fetchone()


def test_what_finds_no_place_says_so_once_however_much_there_is() -> None:
    leased(due("holder"))
    sleeping = {"status": "waiting", "waiting_for": "sleep", "has_begun": True}
    rows = [due(f"s{number}", ago=100 - number, **sleeping) for number in range(3)]
    later = due("later", ago=-60, **sleeping)
    limits = serve({"one": 1, "two": 1})
    assert sorted(on_connections(limits.hold_back)) == [row.key for row in rows]
    assert [row.refresh().status for row in (*rows, later)] == ["queued"] * 3 + ["waiting"]
    assert on_connections(limits.hold_back) == []
    new = due("s3", **sleeping)
    assert on_connections(limits.hold_back) == [new.key]


def test_a_sleeper_for_whom_there_is_a_place_is_left_to_be_claimed() -> None:
    row = due("sleeper", status="waiting", waiting_for="sleep", has_begun=True)
    assert on_connections(serve({"one": 1}).hold_back) == []
    assert (row.refresh().status, claimed({"one": 1})) == ("waiting", ["sleeper"])


def test_ten_thousand_that_wait_for_a_place_cost_no_more_than_none() -> None:
    with connection.cursor() as cursor:
        cursor.execute(FILL, [BACKLOG])
        cursor.execute("ANALYZE engine_instance")
    names: dict[str, object] = {"unlimited": [], "limited": ["full", "empty"], "limits": [5, 5]}
    for statement in (claim_sql.OPEN, claim_sql.OPEN_QUARANTINED, claim_sql.NEXT_DUE_WITH_LIMITS):
        explain(statement, names | {"ahead": 0})  # the first one sets hint bits
        plan = explain(statement, names | {"ahead": 0})
        assert {kind for kind, _ in scans(plan)} <= {"Index Scan", "Index Only Scan", "Bitmap Heap Scan"}
        assert buffers(plan) < 60, json.dumps(plan, indent=1)
    values = names | {"limit": 8, "worker_id": 1, "lease": 30, "ahead": 0, "late_new": 0, "limits": [8, 5]}
    plan = explain(claim_sql.CLAIM_WITH_LIMITS, values)
    assert (plan["Actual Rows"], buffers(plan) < 300) == (3, True), json.dumps(plan, indent=1)
