"""Several programs answer one request at the same moment: one of them does, and the others learn who was first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.live import LiveStack
from tests.platform.programs import program
from tests.shifts import wait_until

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

GATES = "/workflows/gate/instances"
ANSWERS = (
    "SELECT count(*) FROM engine_event e JOIN engine_instance i ON i.key = e.instance_id WHERE i.id = 'race'"
)


def test_one_answer_counts(api_stack: LiveStack) -> None:
    voters = [program(api_stack, role="approver", verbs=("view", "approve")) for _ in range(3)]
    starter = program(api_stack)
    assert starter.ask("POST", GATES, {"id": "race", "params": {"message": "Now?"}}).status == 201
    seqs: list[int] = []

    def is_asked() -> bool:
        seqs[:] = [one["seq"] for one in starter.ask("GET", f"{GATES}/race/requests").document["requests"]]
        return bool(seqs)

    wait_until(is_asked, what="the request")
    body = {"answer": {"refund": True, "amount": 5}}
    with ThreadPoolExecutor(12) as pool:
        asked = [
            pool.submit(voters[n % 3].ask, "POST", f"{GATES}/race/requests/{seqs[0]}/answer", body)
            for n in range(12)
        ]
        answers = [one.result() for one in asked]

    assert sorted(one.status for one in answers) == [200] + [409] * 11
    assert {one.document["code"] for one in answers if one.status == 409} <= {
        "request_answered",
        "instance_finished",
    }
    with psycopg.connect(api_stack.dsn()) as database:
        assert database.execute(ANSWERS).fetchall() == [(1,)]
    rows = starter.ask("GET", f"{GATES}/race/audit").document["actions"]
    assert [row["verb"] for row in rows] == ["answer", "start"]
