"""The claim among twenty thousand instances: by the index, in order, and at the same small cost for any backlog."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from engine.worker.database import claim_sql, sql

pytestmark = pytest.mark.usefixtures("engine_db")

ROWS = 20_000
WORKFLOWS = [f"plan-{number}" for number in range(5)]

PARAMETERS = {"unlimited": WORKFLOWS, "worker_id": 1, "lease": 30, "ahead": 0.2, "late_new": -0.2}

FILL = """
    INSERT INTO engine_instance (workflow, id, status, waiting_for, params, wake_at, owner, fence, finished_at)
    SELECT 'plan-' || n %% 5, 'i' || n, s.status, CASE WHEN s.status = 'waiting' THEN 'sleep' ELSE '' END, '{}',
        CASE s.status
            WHEN 'complete' THEN NULL
            WHEN 'queued' THEN now() - n * interval '1 millisecond'
            WHEN 'waiting' THEN now() + interval '1 hour' + n * interval '1 second'
            ELSE now() + interval '30 seconds'
        END,
        CASE WHEN s.status = 'running' THEN 7 END, 1,
        CASE WHEN s.status = 'complete' THEN now() END
    FROM generate_series(1, %(rows)s) AS n
    CROSS JOIN LATERAL (
        SELECT CASE WHEN n %% 100 < %(due)s THEN 'queued' WHEN n %% 100 < %(due)s + 10 THEN 'waiting'
            WHEN n %% 100 < %(due)s + 12 THEN 'running' ELSE 'complete' END AS status
    ) s
"""


def fill(*, due: int) -> None:
    """Write the rows: `due` per cent of them queued, 10 asleep, 2 held by a worker, the others complete."""
    with connection.cursor() as cursor:
        cursor.execute(FILL, {"rows": ROWS, "due": due})
        cursor.execute("ANALYZE engine_instance")


def explain(statement: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Run the statement, undo it, and return its plan."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", parameters)
        [plan] = cursor.fetchone()
        transaction.set_rollback(True)
    return dict((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"])


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def scans(plan: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the kind and the index of each scan of the table of instances."""
    return sorted(
        {
            (node["Node Type"], node.get("Index Name", ""))
            for node in nodes(plan)
            if node.get("Relation Name") == "engine_instance" and "Scan" in node["Node Type"]
        }
    )


def buffers(plan: dict[str, Any]) -> int:
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def claim(limit: int) -> dict[str, Any]:
    return explain(claim_sql.CLAIM, PARAMETERS | {"limit": limit})


@pytest.mark.parametrize("due", [1, 80])
def test_a_claim_reads_the_index_and_little_else_whatever_is_due(due: int) -> None:
    """It takes the oldest first, over all workflows, whatever their names."""
    fill(due=due)
    claim(8)  # the first one sets hint bits
    plan = claim(8)
    found = scans(plan)
    assert ("Index Scan", "engine_instance_due") in found
    assert {kind for kind, _ in found} == {"Index Scan"}
    assert plan["Actual Rows"] == 8
    # Eight rows locked and written, each with its entries in five indexes, out of 5 × 8 looked at.
    assert buffers(plan) < 900
    with connection.cursor() as cursor:
        cursor.execute("SELECT key FROM engine_instance WHERE wake_at <= now() ORDER BY wake_at LIMIT 12")
        oldest = [key for (key,) in cursor.fetchall()]
        cursor.execute(claim_sql.CLAIM, PARAMETERS | {"limit": 12})
        assert sorted(row[0] for row in cursor.fetchall()) == sorted(oldest)


def test_where_nothing_is_due_a_claim_and_what_is_asked_between_claims_cost_a_look() -> None:
    fill(due=0)
    plan = claim(64)
    assert (plan["Actual Rows"], scans(plan)[0]) == (0, ("Index Scan", "engine_instance_due"))
    assert buffers(plan) < 60
    for statement, parameters, index, most in (
        # Past every leased row, whose lease ends before the first sleeper is due: a thousand of them here.
        (claim_sql.NEXT_DUE, {"unlimited": WORKFLOWS, "ahead": 0.2}, "engine_instance_due", 60),
        (sql.HELD, {"worker_id": 8}, "engine_instance_owned", 10),
        (sql.RENEW, {"worker_id": 8, "lease": 30, "only": None}, "engine_instance_owned", 10),
    ):
        plan = explain(statement, parameters)
        assert index in {node.get("Index Name") for node in nodes(plan)}, statement
        assert "Seq Scan" not in {kind for kind, _ in scans(plan)}, statement
        assert buffers(plan) < most, statement


def test_thousands_that_start_later_cost_a_claim_nothing() -> None:
    """Also just before their time, when sleepers of that moment would be claimed in advance."""
    fill(due=80)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE engine_instance SET starts_at = at, wake_at = at FROM (SELECT now() + interval '1 hour' AS at)"
            " AS later WHERE status = 'queued'"
        )
        cursor.execute("VACUUM ANALYZE engine_instance")
    plan = claim(64)
    assert (plan["Actual Rows"], scans(plan)[0]) == (0, ("Index Scan", "engine_instance_due"))
    assert buffers(plan) < 60
    parameters = {"unlimited": WORKFLOWS, "ahead": 0.2}
    plan = explain(claim_sql.NEXT_DUE, parameters)
    assert "Seq Scan" not in {kind for kind, _ in scans(plan)}
    assert buffers(plan) < 60
    with connection.cursor() as cursor:
        cursor.execute(claim_sql.NEXT_DUE, parameters)
        cursor.execute(
            "SELECT %s = (extract(epoch FROM min(starts_at)) * 1000000)::bigint FROM engine_instance",
            [cursor.fetchone()[0]],
        )
        assert cursor.fetchone() == (True,), "not in advance"
