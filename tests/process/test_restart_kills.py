"""Restarts while workers are killed: each generation is one story, and the last one comes to its end."""

from __future__ import annotations

import random
import time
from collections import Counter
from contextlib import suppress

import pytest

from engine import InstanceFinishedError, StepNotFoundError
from engine.models import Attempt, Event, Instance, Step
from tests.process.arena import Arena, kill, wait_until
from tests.process.program.workflows import block, event, program, sleep, together, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

INSTANCES = 12
ROUNDS = 8  # through the targets
STEPS = [
    work("a", 0.05),
    block("b", 0.05),
    event("go"),
    together(work("c", 0.1), sleep("nap", 0.05)),
    work("d", 0.05),
]
TARGETS = (None, "b", "c", "d")


def send_what_is_waited_for(instances: list[Instance]) -> None:
    sent = set(Event.objects.filter(state="buffered").values_list("instance_id", flat=True))
    for one in instances:
        if one.key not in sent:
            with suppress(InstanceFinishedError):
                one.send_event("go")


def restarted(one: Instance, target: str | None) -> Instance:
    """Restart it from a step, or from the start where it is not that far."""
    try:
        return one.restart(target)
    except StepNotFoundError:
        return one.restart()


def test_restarts_and_deaths_of_workers_leave_one_story_of_each_generation(arena: Arena) -> None:
    """B23, I1, guarantees 14 and 17: whoever is restarted from where, by whom it was held, and when that died"""
    rng = random.Random(7)
    instances = program.start_many([{"params": STEPS}] * INSTANCES).created
    restarts = Counter[int]()

    def is_over() -> bool:
        open_ones = list(Instance.objects.exclude(status="complete"))
        send_what_is_waited_for(open_ones)
        for one in open_ones:
            if one.status == "errored":  # alone in its worker at three of the deaths, as chance may have it
                one.restart()
                restarts[one.key] += 1
        return not open_ones

    workers = [arena.worker(f"worker {number}") for number in range(2)]
    wait_until(is_over, what="the first end of all")
    for count, target in enumerate(TARGETS * ROUNDS):
        one = instances[count] if count < INSTANCES else rng.choice(instances)
        restarted(one, target)
        restarts[one.key] += 1
        send_what_is_waited_for(instances)
        if count % 10 == 9:
            wait_until(lambda: Attempt.objects.filter(status="running").exists() or is_over())
            kill(workers.pop(0))
            workers.append(arena.worker(f"after {count}"))
        time.sleep(rng.uniform(0.0, 0.1))
    wait_until(is_over, what="the end of all")

    assert Attempt.objects.filter(status__in=("lost", "cancelled")).exists(), "nobody was at work"
    assert Step.objects.filter(kept_from__isnull=False).exists(), "nothing was kept"
    for one in instances:
        assert one.refresh().generation == 1 + restarts[one.key]
        assert one.generations.count() == restarts[one.key]
        assert len(one.output) == len(STEPS)
    begun = Counter((line.key, line.attempt) for line in arena.ledger.lines(what="start"))
    assert set(begun.values()) == {1}
