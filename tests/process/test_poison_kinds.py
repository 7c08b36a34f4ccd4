"""Every kind of step that ruins its worker fails by itself; what runs beside it in the same worker completes."""

from __future__ import annotations

import subprocess

import pytest

from engine.models import Attempt, Instance, Step
from tests.faults.poison.workflows import IN_THE_HANDLER, POISONS, poison
from tests.process.arena import Arena, attempts, is_alive, wait_for, wait_until
from tests.process.nursery import Nursery
from tests.process.program.workflows import block, program, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

STALL = 1.5  # seconds that a loop may stand still
GOOD = 10  # before the poison, and as many after it: those that it takes along run alone, one after the other
APPS = "tests.process.program,tests.faults.poison"
KILLERS = ("is_killed", "blocks_the_loop")


def test_every_poison_fails_by_itself_and_the_neighbours_complete(arena: Arena) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "variables": {"REPRISE_APPS": APPS}}
    nursery = Nursery(arena.launch("-m", "tests.process.nursery", **pipes))
    good = neighbours()
    ends = {name: error for name, (_, error) in POISONS.items()} | IN_THE_HANDLER
    bad = {name: poison.start(name) for name in ends}
    good += neighbours()

    workers = run_until_all_have_ended(nursery, [*good, *bad.values()])
    nursery.close()

    wait_for(good)
    assert {name: one.refresh().error["type"] for name, one in bad.items()} == ends
    for name, one in bad.items():
        assert attempts(one, "before")[-1][1] == "complete"
        if name in KILLERS:
            assert {status for _, status in attempts(one, "poison")} == {"lost"}
            assert Attempt.objects.filter(instance=one, quarantined=True, status="lost").count() == 3
    completed = Step.objects.filter(instance__in=good, status="complete")
    assert completed.count() == len(good) * 3
    assert workers > 2 * 3


def neighbours() -> list[Instance]:
    return program.start_many([{"params": [work("a", 0.2), block("b", 0.1), work("c")]}] * GOOD).created


def run_until_all_have_ended(nursery: Nursery, instances: list[Instance]) -> int:
    """Replace the worker whenever it has died, as a sentinel does; return how many there were."""
    left = Instance.objects.filter(key__in=[one.key for one in instances], finished_at=None)
    workers = []

    def has_ended() -> bool:
        if not workers or not is_alive(workers[-1]):
            name = f"number {len(workers)}"
            workers.append(nursery.start("worker", name=name, slots=64, lease=30, stall=STALL))
        return not left.exists()

    wait_until(has_ended, seconds=60, what="the end of all")
    return len(workers)
