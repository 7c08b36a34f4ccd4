"""Parents and children while workers are killed: no orphan, no double, nothing lost (B25)."""

from __future__ import annotations

import random
import time

import pytest
from django.db.models import Q

from engine.models import Attempt, Instance, Step
from tests.process.arena import Arena, kill, wait_until
from tests.process.program.workflows import family, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

# How a family is, and how its parent ends.
KINDS = {
    "run": "complete",
    "gather": "complete",
    "parallel": "complete",
    "fail": "errored",
    "stop": "terminated",
}
PARENTS = 30
CHILDREN = 5
SECONDS = 7.0
SETTLED_SECONDS = 180.0


def is_over() -> bool:
    return not (Instance.objects.open().exists() or Instance.objects.filter(owes=True).exists())


def has_children(parent: Instance) -> bool:
    return Instance.objects.filter(parent_key=parent.key).exists()


def was_convicted(parent: Instance) -> bool:
    """Tell whether a step of the family was alone in its worker at three of the deaths, as chance may have it."""
    family_of = Q(instance=parent) | Q(instance__in=Instance.objects.filter(parent_key=parent.key))
    return Step.objects.filter(family_of, lost__gte=3, status="errored").exists()


def test_families_survive_the_deaths_of_their_workers(arena: Arena) -> None:
    """Some wait for their children one by one, some in parallel; some fail and end them, some are terminated."""
    rng = random.Random(11)
    child = [work("one", 0.15), work("two", 0.15)]
    parents = [
        (kind, family.start({"kind": kind, "count": CHILDREN, "child": child}))
        for kind in KINDS
        for _ in range(PARENTS // len(KINDS))
    ]
    stopped = [one for kind, one in parents if kind == "stop"]
    workers = [arena.worker(f"worker {number}") for number in range(2)]
    ends_at = time.monotonic() + SECONDS
    while time.monotonic() < ends_at:
        time.sleep(rng.uniform(0.1, 0.5))
        kill(workers.pop(0))
        workers.append(arena.worker(f"worker {rng.random()}"))
        if stopped and has_children(stopped[0]):
            stopped.pop(0).terminate()
    for one in stopped:
        wait_until(lambda one=one: has_children(one))
        one.terminate()
    wait_until(is_over, seconds=SETTLED_SECONDS, what="the end of all")

    assert Attempt.objects.filter(status="lost").exists(), "nobody was killed at work"
    ended = [(kind, one.refresh()) for kind, one in parents if not was_convicted(one)]
    assert len(ended) > PARENTS * 0.8
    assert [(kind, one.status) for kind, one in ended] == [(kind, KINDS[kind]) for kind, _ in ended]
    for _, parent in parents:
        children = list(Instance.objects.filter(parent_key=parent.key))
        calls = Step.objects.filter(instance=parent, kind="child").count()
        assert len(children) == calls == len({one.parent_step for one in children})
        if parent.status == "complete":
            assert len(children) == CHILDREN
            assert sorted(parent.output) == sorted(one.output for one in children)
