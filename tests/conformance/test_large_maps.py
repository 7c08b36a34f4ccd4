"""Maps of many items: each costs what it costs in a small one, and a replay runs none of them."""

from __future__ import annotations

import time

import pytest

from engine import WorkflowStep, workflow
from engine.models import Instance, Step
from tests import shifts
from tests.stories import wait_for, wait_until
from tests.travel import skip_wait

MANY, FEW, REPLAYS = 1_000, 100, 3


@pytest.fixture(autouse=True)
def _profile() -> None:
    """Measured in an ordinary worker."""


@pytest.mark.second_tier
def test_an_item_costs_the_same_among_a_thousand_as_among_a_hundred_and_a_replay_runs_none() -> None:
    ran: list[int] = []
    seconds: dict[str, float] = {}  # of this process, in which the worker runs

    async def body(item: int, index: int) -> int:
        ran.append(index)
        return item + 1

    @workflow
    async def story(step: WorkflowStep) -> int:
        for name, count in (("warm", FEW), ("few", FEW), ("many", MANY)):
            began = time.process_time()
            results = await step.map(name, range(count), body)
            seconds.setdefault(name, time.process_time() - began)
        for number in range(REPLAYS):
            await step.sleep(f"park {number}", "1h")
        return sum(results)

    instance = story.start()
    with shifts.running_shift():
        replays = [seconds_of_replay(instance, number) for number in range(REPLAYS)]
        shifts.wait_for(instance)
    assert instance.output == MANY * (MANY + 1) // 2
    assert len(ran) == MANY + 2 * FEW
    assert Step.objects.filter(instance=instance, kind="do", status="complete").count() == len(ran)
    assert seconds["many"] / MANY < 3 * seconds["few"] / FEW
    assert min(replays) < seconds["many"]


def seconds_of_replay(instance: Instance, number: int) -> float:
    """Wake the instance from a sleep, and return how long the rest took."""
    steps = Step.objects.filter(instance=instance)
    wait_until(lambda: steps.filter(name=f"park {number}").exists())
    wait_for(instance, "waiting")
    began = time.process_time()
    skip_wait(instance)
    wait_until(lambda: steps.filter(name=f"park {number}", status="complete").exists())
    return time.process_time() - began
