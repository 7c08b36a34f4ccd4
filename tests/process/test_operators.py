"""Pause, resume and terminate from several processes, racing with running steps and with each other."""

from __future__ import annotations

import pytest

from engine.models import Attempt, Audit, Instance
from tests.process.arena import Arena, is_alive, wait_for, wait_until
from tests.process.program.workflows import block, event, program, sleep, together, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

INSTANCES = 30
OPERATORS = 3
SECONDS = 5.0

STEPS = [
    work("a", 0.05),
    block("b", 0.05),
    together(work("c", 0.1), block("d", 0.1), sleep("e", 0.2)),
    *(work(f"step {number}", 0.05) for number in range(10)),
    event("go"),
    *(block(f"late {number}", 0.02) for number in range(10)),
]


@pytest.fixture
def steered(arena: Arena) -> list[Instance]:
    """Instances after seconds of random steering, all resumed, all with their event."""
    for name in ("one", "two"):
        arena.worker(name)
    instances = program.start_many([{"params": STEPS}] * INSTANCES).created
    names = [one.id for one in instances]
    operators = [
        arena.start("operator", seed=seed, instances=names, seconds=SECONDS) for seed in range(OPERATORS)
    ]
    sender = arena.start("events", instances=names, type="go", pause=SECONDS / INSTANCES)
    wait_until(lambda: not any(map(is_alive, [*operators, sender])), what="the end of the operators")
    for instance in instances:
        instance.resume(by="test")
    wait_for(instances, "complete", "terminated")
    return instances


def test_instances_end_as_operators_were_told_whatever_they_raced_with(
    arena: Arena, steered: list[Instance]
) -> None:
    terminated = {line.instance for line in arena.ledger.lines(what="terminate", step="terminated")}
    ended = {one.id: one.refresh().status for one in steered}
    assert {name for name, status in ended.items() if status == "terminated"} == terminated
    assert 0 < len(terminated) < INSTANCES
    told = [line for verb in ("pause", "resume") for line in arena.ledger.lines(what=verb)]
    assert {"paused", "waiting_for_pause"} <= {line.step for line in told}

    for one in steered:
        changes = Audit.objects.filter(instance_key=one.key).order_by("key")
        # An answer from no user, or an action that left no trace, would break the chain.
        assert [row.verb for row in changes].count("terminate") == (one.id in terminated)
        assert all(row.before != row.after for row in changes)
        assert_nothing_began_while_paused(one, list(changes))
        spent = Attempt.objects.filter(instance=one).exclude(status__in=["complete", "cancelled"])
        assert spent.count() == 0
        starts = [(line.step, line.attempt) for line in arena.ledger.lines(what="start", instance=one.id)]
        assert len(starts) == len(set(starts))


def assert_nothing_began_while_paused(one: Instance, changes: list[Audit]) -> None:
    """From a pause that took effect at once until its resume, no attempt begins."""
    begun = list(Attempt.objects.filter(instance=one).values_list("started_at", flat=True))
    for row in changes:
        if row.after != "paused":
            continue
        resumed = next((later.at for later in changes if later.key > row.key), one.finished_at)
        assert [at for at in begun if row.at < at < resumed] == [], (one.id, row.at, resumed)
