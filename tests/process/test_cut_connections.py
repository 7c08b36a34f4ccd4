"""The connection of the journal, or the one for claims, is cut again and again: a shift that has its lock continues."""

from __future__ import annotations

import random
import time
from collections import Counter

import pytest

from engine.models import Attempt, Event, Instance, Log
from tests.process.arena import Arena, is_alive, wait_for, wait_until
from tests.process.program.workflows import Op, block, event, program, sleep, tell, together, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

SECONDS = 3.0
CUTS = 12  # at least, however long a busy machine takes over them
INSTANCES = 30
STEPS: list[Op] = [
    tell("first"),
    together(work("long", SECONDS - 1), block("blocking", 0.2), sleep("nap", 0.3), event("go")),
    *(op for number in range(12) for op in (tell(f"tell {number}"), block(f"block {number}", 0.02))),
    sleep("last nap", 0.2),
    work("end"),
]


@pytest.mark.parametrize("which", ["journal", "claims", "either"])
def test_nothing_is_lost_or_repeated_when_only_a_connection_is_cut(arena: Arena, which: str) -> None:
    worker = arena.worker("steady")
    instances = program.start_many([{"params": STEPS}] * INSTANCES).created
    sender = arena.start(
        "events", instances=[one.id for one in instances], type="go", pause=SECONDS / INSTANCES
    )
    late = arena.start(
        "starter", prefix="late", count=10, params=[{"kind": "tell", "name": "late"}], pause=SECONDS / 10
    )
    arena.ledger.wait_for(what="start")

    cut_at_random(arena, ["journal", "claims"] if which == "either" else [which])

    wait_until(lambda: not is_alive(sender) and not is_alive(late), what="the end of the clients")
    wait_for(list(Instance.objects.all()))
    assert Instance.objects.count() == INSTANCES + 10
    assert is_alive(worker)
    # What was running when the connection broke continued, and was never begun again.
    assert set(Attempt.objects.values_list("status", "number").distinct()) == {("complete", 1)}
    started = Counter((line.instance, line.step) for line in arena.ledger.lines(what="start"))
    assert set(started.values()) == {1}
    assert len(started) == Attempt.objects.count()
    told = Log.objects.values_list("instance_id", "step_seq", "attempt")
    assert set(Counter(told).values()) == {1}
    assert len(told) == INSTANCES * 13 + 10
    assert set(Event.objects.values_list("state", flat=True)) == {"consumed"}


def cut_at_random(arena: Arena, names: list[str]) -> None:
    """End sessions of these kinds for a while, each as soon as it is there again."""
    rng, cuts = random.Random(7), 0
    ends_at = time.monotonic() + SECONDS
    with arena.connect() as connection:
        while time.monotonic() < ends_at or cuts < CUTS:
            query = (
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE %s"
            )
            found = connection.execute(query, [f"reprise {rng.choice(names)} %"]).fetchone()
            cuts += found[0] if found else 0
            time.sleep(rng.uniform(0, 0.1))
