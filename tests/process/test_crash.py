"""SIGKILL of a worker in the middle of bodies: the instance continues elsewhere, and what was done stays done."""

from __future__ import annotations

import random
import time
from collections import Counter

import pytest

from engine.models import Attempt, Instance, Step
from tests.process.arena import Arena, attempts, kill, wait_for, wait_until
from tests.process.program.workflows import Op, block, nest, program, sleep, together, work

pytestmark = [pytest.mark.process, pytest.mark.first_tier]

RECOVERY_SECONDS = 15.0  # half a lease: nothing waits for it
LONG = 60.0
KILLS = 8
# Each kills at another moment.
TURNS = [0, *(pytest.param(turn, marks=pytest.mark.second_tier) for turn in (1, 2, 3))]


def ends(arena: Arena, instance: Instance) -> Counter[str]:
    return Counter(line.step for line in arena.ledger.lines(what="end", instance=instance.id))


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("body", [work, block], ids=["async", "sync"])
def test_killed_body_runs_again_elsewhere_and_completed_steps_do_not(
    arena: Arena, body: object, turn: int
) -> None:
    first = arena.worker("first")
    instance = program.start([work("before"), body("long", LONG, 0), work("after")])
    begun = arena.ledger.wait_for(what="start", step="long")
    time.sleep(random.Random(turn).uniform(0, 0.2))

    killed_at = time.monotonic()
    kill(first)
    arena.worker("second")  # as a cluster's sentinel does

    again = arena.ledger.wait_for(what="start", step="long", attempt=2)
    assert again.at - killed_at < RECOVERY_SECONDS
    assert again.pid != begun.pid == first
    assert again.key == begun.key
    wait_for([instance])
    assert instance.refresh().output == [1, 2, 1]
    assert ends(arena, instance) == {"before": 1, "long": 1, "after": 1}
    assert attempts(instance, "long") == [(1, "lost"), (2, "complete")]
    assert attempts(instance, "before") == attempts(instance, "after") == [(1, "complete")]


@pytest.mark.parametrize("turn", TURNS)
def test_worker_killed_amid_a_gather_repeats_only_the_open_branches(arena: Arena, turn: int) -> None:
    first = arena.worker("first")
    branches = [work("done"), block("done too"), work("open", LONG, 0.05), block("open too", LONG, 0.05)]
    instance = program.start([together(*branches, sleep("nap", 0.2)), work("after")])
    arena.ledger.wait_for(what="start", step="open")
    arena.ledger.wait_for(what="start", step="open too")
    wait_until(lambda: Step.objects.filter(instance=instance, status="complete").count() >= 2)
    time.sleep(random.Random(turn).uniform(0, 0.3))

    kill(first)
    arena.worker("second")

    wait_for([instance])
    assert instance.refresh().output == [[1, 1, 2, 2, None], 1]
    assert ends(arena, instance) == {"done": 1, "done too": 1, "open": 1, "open too": 1, "after": 1}
    assert attempts(instance, "open") == attempts(instance, "open too") == [(1, "lost"), (2, "complete")]


@pytest.mark.second_tier
def test_killed_at_any_moment_an_instance_loses_nothing_that_was_recorded(arena: Arena) -> None:
    """Many short steps, and a new worker for every one that is killed on the way."""
    steps: list[Op] = [(work if number % 2 else block)(f"step {number}", 0.02) for number in range(20)]
    instances = program.start_many([{"params": steps}] * 10).created
    rng = random.Random(7)
    recorded: dict[tuple[int, str], str] = {}
    for number in range(KILLS):
        worker = arena.worker(f"worker {number}")
        arena.ledger.wait_for(what="start", pid=worker)
        time.sleep(rng.uniform(0, 0.2))
        kill(worker)
        now = finished_steps()
        assert recorded.items() <= now.items()
        recorded = now

    arena.worker("last")
    wait_for(instances, "complete", "errored")
    # On a slow machine a step may stand alone at three of these kills: then it has to be given up.
    given_up = {one.key for one in instances if lost_in_quarantine(one) == 3}
    assert {one.key for one in instances if one.refresh().status == "errored"} == given_up
    assert len(given_up) <= 2
    assert recorded.items() <= finished_steps().items()
    started = Counter((line.instance, line.step, line.attempt) for line in arena.ledger.lines(what="start"))
    assert set(started.values()) == {1}
    assert Attempt.objects.filter(status="lost").count() > KILLS / 2
    assert not Instance.objects.filter(quarantined=True).exists()


@pytest.mark.second_tier
def test_killed_at_any_moment_a_body_keeps_the_steps_that_it_has_run(arena: Arena) -> None:
    """Guarantee 8: its next attempt continues with the rest, also two levels down."""
    inner = nest("inner", *(work(f"inner {number}", 0.02) for number in range(3)))
    branches = together(block("a", 0.05), work("b", 0.05), inner)
    steps = [work("first", 0.02), block("second", 0.02), branches, work("last", 0.02)]
    instances = program.start_many([{"params": [nest("outer", *steps), work("after")]}] * 10).created
    rng = random.Random(8)
    recorded: dict[tuple[int, str], str] = {}
    for number in range(4):
        worker = arena.worker(f"worker {number}")
        arena.ledger.wait_for(what="start", pid=worker)
        time.sleep(rng.uniform(0, 0.2))
        kill(worker)
        now = finished_steps()
        assert recorded.items() <= now.items()
        recorded = now

    arena.worker("last")
    wait_for(instances)
    assert recorded.items() <= finished_steps().items()
    started = Counter((line.instance, line.step, line.attempt) for line in arena.ledger.lines(what="start"))
    assert set(started.values()) == {1}
    assert len({(line.instance, line.step, line.key) for line in arena.ledger.lines(what="start")}) == 90
    assert Attempt.objects.filter(status="lost", step_seq=1).exists()
    assert {instance.status for instance in map(Instance.refresh, instances)} == {"complete"}


def lost_in_quarantine(instance: Instance) -> int:
    """Count the losses of the step that lost most while it ran alone."""
    lost = Attempt.objects.filter(instance_id=instance.key, status="lost", quarantined=True)
    return max(Counter(lost.values_list("step_seq", flat=True)).values(), default=0)


def finished_steps() -> dict[tuple[int, str], str]:
    rows = Step.objects.filter(status="complete")
    return {(key, name): str(at) for key, name, at in rows.values_list("instance_id", "name", "finished_at")}
