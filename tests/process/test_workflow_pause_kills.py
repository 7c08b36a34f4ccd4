"""SIGKILL of the worker while its workflow is paused, and while it is released: nothing is half done."""

from __future__ import annotations

import time

import pytest

from engine import pauses
from engine.models import Instance
from tests.process.arena import Arena, attempts, kill, wait_for, wait_until
from tests.process.program.workflows import program, sleep, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

MOMENTS = [0.0, 0.005, 0.02, 0.1]
COUNT = 8


def started(instances: list[Instance]) -> int:
    return Instance.objects.filter(key__in=[one.key for one in instances], started_at__isnull=False).count()


def has_left(instance: Instance) -> bool:
    return instance.refresh().owner is None and instance.status == "queued"


def test_killed_while_a_body_outlives_the_pause_it_runs_again_only_after_the_resume(arena: Arena) -> None:
    first = arena.worker("first")
    instance = program.start([work("long", 60, 0), work("next", 0)])
    wait_until(lambda: instance.steps.filter(name="long", attempts=1).exists(), what="the body")
    pauses.pause("program")
    kill(first)
    arena.worker("second")

    wait_until(lambda: has_left(instance), what="the instance being taken back")
    time.sleep(0.5)
    assert attempts(instance, "long") == [(1, "lost")]
    assert has_left(instance)
    pauses.resume("program")
    wait_for([instance], "complete")
    assert attempts(instance, "long") == [(1, "lost"), (2, "complete")]


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_around_a_pause_each_instance_is_held_or_has_ended(arena: Arena, moment: float) -> None:
    first = arena.worker("first")
    instances = [program.start([work("a", 0.01), work("b", 0.01), work("c", 0.01)]) for _ in range(COUNT)]
    wait_until(lambda: started(instances) == COUNT, what="their starts")
    pauses.pause("program")
    time.sleep(moment)
    kill(first)
    arena.worker("second")

    wait_until(lambda: all(has_left(one) or one.is_finished for one in instances), what="all being held")
    pauses.resume("program")
    wait_for(instances, "complete")


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_while_some_are_released_they_end_and_the_others_stay_held(
    arena: Arena, moment: float
) -> None:
    first = arena.worker("first")
    pauses.pause("program")
    instances = [program.start([work("a", 0.01), sleep("nap", 0.05), work("b", 0.01)]) for _ in range(COUNT)]
    assert pauses.resume("program", count=3) == pauses.Resumed("program", 3, COUNT - 3, is_paused=True)
    time.sleep(moment)
    kill(first)
    arena.worker("second")

    wait_for(instances[:3], "complete")
    assert started(instances) == 3
    assert pauses.paused()[0].released == 3
    pauses.resume("program")
    wait_for(instances, "complete")
