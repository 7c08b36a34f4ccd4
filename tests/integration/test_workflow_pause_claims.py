"""Claims while workflows are paused: only what was released, and at no cost for what is held."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection

from engine import pauses
from engine.models import Instance
from engine.status import gathering, health
from engine.status.load import CAP, load
from engine.worker.database import claim_sql, sql
from tests.integration.rows import leased, row_of
from tests.integration.test_claim_plan import buffers, explain, nodes, scans
from tests.integration.test_limit_claims import claimed, due, on_connections, serve

pytestmark = pytest.mark.usefixtures("engine_db")

BACKLOG = 10_000
FILL = """
    INSERT INTO engine_instance (workflow, id, status, params, wake_at, fence)
    SELECT 'one', 'i' || n, 'queued', '{}', now() - n * interval '1 second', 1 FROM generate_series(1, %s) AS n
"""
# The same with and without a limit.
KINDS: list[dict[str, int | None]] = [{"one": None, "other": None}, {"one": 64, "other": 64}]


@pytest.mark.parametrize("served", KINDS)
def test_of_a_paused_workflow_only_what_was_released_is_claimed(served: dict[str, int | None]) -> None:
    for number in range(4):
        due(f"i{number}", ago=9 - number)
    due("o", workflow="other")
    pauses.pause("one")
    assert claimed(served) == ["o"]
    pauses.resume("one", count=2)
    assert claimed(served) == ["i0", "i1"]
    assert claimed(served) == []
    pauses.resume("one")
    assert claimed(served) == ["i2", "i3"]


@pytest.mark.parametrize("served", KINDS)
def test_a_quarantined_one_is_held_too(served: dict[str, int | None]) -> None:
    due("bad", quarantined=True)
    limits = serve(served)
    assert counted(limits) == 1
    pauses.pause("one")
    assert counted(limits) == 0
    assert claimed(served, quarantined=True) == []
    pauses.resume("one", count=1)
    assert counted(limits) == 1
    assert claimed(served, quarantined=True) == ["bad"]


def test_one_that_is_quarantined_and_held_takes_no_place_of_what_is_released() -> None:
    due("old", ago=9)
    due("bad", quarantined=True)
    pauses.pause("one")
    pauses.resume("one", count=1)
    assert claimed({"one": 1}) == ["old"]


@pytest.mark.parametrize("served", KINDS)
def test_what_is_held_is_not_due_for_a_worker(served: dict[str, int | None]) -> None:
    due("i")
    limits = serve(served)
    assert next_due(limits) is not None
    pauses.pause("one")
    assert next_due(limits) is None
    pauses.resume("one", count=1)
    assert next_due(limits) is not None


def test_what_is_held_is_not_held_back_by_a_limit_as_well() -> None:
    leased(due("running"))
    row = due("sleeper", status="waiting", waiting_for="sleep", has_begun=True)
    pauses.pause("one")
    limits = serve({"one": 1})
    assert on_connections(limits.hold_back) == []
    pauses.resume("one")
    assert on_connections(limits.hold_back) == [row.key]


def test_what_was_paused_for_changed_code_stays_so_until_the_resume() -> None:
    row_of(
        workflow="one",
        status="paused",
        wake_at=None,
        paused_at=due("i").wake_at,
        code="before",
        pause_reason={"type": "CodeChangedError"},
    )
    values = {"workflows": ["one"], "codes": ["before"], "limit": 10}
    pauses.pause("one")
    assert asked(sql.GO_BACK, values) == []
    pauses.resume("one")
    assert len(asked(sql.GO_BACK, values)) == 1


def test_a_worker_learns_which_of_its_instances_are_to_leave() -> None:
    first, second = leased(due("first")), leased(due("second"))
    other = leased(due("other", workflow="other"))
    assert to_leave() == {first.key: False, second.key: False, other.key: False}
    pauses.pause("one")
    assert to_leave() == {first.key: True, second.key: True, other.key: False}
    Instance.objects.filter(key=second.key).update(status="queued", owner=None, wake_at=first.created_at)
    pauses.resume("one", count=1)
    leased(second)
    assert to_leave() == {first.key: True, second.key: False, other.key: False}


@pytest.mark.parametrize("kind", ["unlimited", "limited"])
def test_ten_thousand_that_are_held_cost_no_more_than_none(kind: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(FILL, [BACKLOG])
        cursor.execute("ANALYZE engine_instance")
    pauses.pause("one")
    names = ["one", "other"]
    values = {"unlimited": names, "limited": [], "limits": []}
    statements = {"claim": claim_sql.CLAIM, "next": claim_sql.NEXT_DUE}
    if kind == "limited":
        values = {"unlimited": [], "limited": names, "limits": [5, 5]}
        statements = {
            "open": claim_sql.OPEN,
            "claim": claim_sql.CLAIM_WITH_LIMITS,
            "next": claim_sql.NEXT_DUE_WITH_LIMITS,
        }
    more = {"limit": 8, "worker_id": 1, "lease": 30, "ahead": 0.2, "late_new": -0.2}
    for statement in statements.values():
        explain(statement, values | more)  # the first one sets hint bits
        plan = explain(statement, values | more)
        assert {where for where, _ in scans(plan)} <= {"Index Scan", "Index Only Scan", "Bitmap Heap Scan"}
        assert buffers(plan) < 60, json.dumps(plan, indent=1)
    pauses.resume("one", count=3)
    plan = explain(statements["claim"], values | more)
    assert "engine_instance_released" in {node.get("Index Name") for node in nodes(plan)}
    assert (plan["Actual Rows"], buffers(plan) < 200) == (3, True), json.dumps(plan, indent=1)


def test_what_is_held_is_counted_apart_from_what_waits_for_a_worker() -> None:
    for number in range(3):
        due(f"i{number}", ago=900 - number)
    due("o", workflow="other", ago=2)
    oldest = Instance.objects.get(id="i2").wake_at
    pauses.pause("one")
    assert counts() == {"one": (0, 3, None), "other": (1, 0, Instance.objects.get(id="o").wake_at)}
    pauses.resume("one", count=2)
    assert counts()["one"] == (2, 1, Instance.objects.get(id="i0").wake_at)
    pauses.resume("one")
    assert counts()["one"][:2] == (3, 0)
    assert oldest > Instance.objects.get(id="i0").wake_at


def test_the_count_of_what_is_held_is_limited() -> None:
    with connection.cursor() as cursor:
        cursor.execute(FILL, [2 * CAP])
    pauses.pause("one")
    assert counts()["one"] == (0, CAP, None)


def test_what_is_held_is_not_overdue() -> None:
    for number in range(3):
        due(f"i{number}", ago=900 - number)
    assert facts().due == 3
    pauses.pause("one")
    assert (facts().due, facts().oldest_due_seconds, facts().held_by_pause) == (0, None, 3)
    pauses.resume("one", count=1)
    found = facts()
    assert (found.due, found.oldest_due_workflow, found.held_by_pause) == (1, "one", 2)


def test_the_status_says_what_holds_an_instance_and_until_it_is_released() -> None:
    first, second, other = due("first", ago=2), due("second"), due("other", workflow="other")
    ended = row_of(
        workflow="one", id="ended", status="terminated", wake_at=None, finished_at=first.created_at
    )
    pauses.pause("one", by="ana", reason="The bank is down.")
    pauses.resume("one", count=1)
    rows = [one.refresh() for one in (first, second, other, ended)]
    expected = [None, ("ana", "The bank is down."), None, None]
    assert [about(gathering.facts_of(row)) for row in rows] == expected
    by_key = gathering.facts_by_key(rows)
    assert [about(by_key[row.key]) for row in rows] == expected


def about(found: gathering.StatusFacts) -> tuple[str, str] | None:
    return None if found.hold is None else (found.hold.by, found.hold.reason)


def counts() -> dict[str, tuple[Any, ...]]:
    return {one.workflow: (one.waiting, one.held, one.oldest_at) for one in load(["one", "other"]).queues}


def facts() -> health.Facts:
    found = health.read(timeout=health.ALIVE_FOR).facts
    assert found is not None
    return found


def counted(limits: Any) -> int:
    ((count,),) = asked(claim_sql.QUARANTINED, limits.parameters() | {"quarantined": 100})
    return int(count)


def next_due(limits: Any) -> int | None:
    found: int | None = on_connections(lambda connection: limits.next_due(connection, ahead=0.0))
    return found


def to_leave() -> dict[int, bool]:
    return {row[0]: row[-1] for row in asked(sql.HELD, {"worker_id": 7})}


def asked(statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
