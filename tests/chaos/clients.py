"""The client processes of a run, as the nursery forks them."""

from __future__ import annotations

import time
from typing import Any

from engine.models import Instance
from tests.chaos.browser import Browser
from tests.chaos.customers import Customer
from tests.chaos.doors import EngineDoor, StudioDoor
from tests.chaos.ops import Op
from tests.chaos.plan import Plan
from tests.chaos.stories import stories
from tests.chaos.sweeper import start_and_sweep
from tests.chaos.visitors import visit_for_ever
from tests.chaos.workflows import kitchen_sink
from tests.process import ledger


def customer(
    *, plan: dict[str, Any], began: float, share: int, of: int, studio: dict[str, Any] | None
) -> None:
    """Tell one of `of` shares of the stories, at a Studio or with the engine's calls."""
    told = Plan(**plan)
    door = StudioDoor(Browser(**studio)) if studio else EngineDoor()
    everything = stories(told.seed, told.instances, told.rate, told.longest)
    mine = [story for story in everything if story.is_in_studio == bool(studio)][share::of]
    Customer(door, mine, began, told.load).run()
    ledger.write("done", instance="customer")


def sweeper(*, plan: dict[str, Any], began: float) -> None:
    start_and_sweep(began + Plan(**plan).load)
    ledger.write("done", instance="sweeper")


def visitors(*, browsers: list[dict[str, Any]], watchers: dict[str, dict[str, Any]]) -> None:
    visit_for_ever(
        [Browser(**one) for one in browsers], {name: Browser(**one) for name, one in watchers.items()}
    )


def burst(*, prefix: str, count: int, steps: int, seconds: float) -> None:
    """Start many small instances at once and wait for them; the ledger gets how many steps a second that were."""
    ops = [Op("work", f"work-{number}") for number in range(steps)]
    names = [f"{prefix}{number}" for number in range(count)]
    began = time.monotonic()
    kitchen_sink.start_many([{"id": name, "params": ops} for name in names])
    ours = Instance.objects.filter(id__in=names)
    while ours.exclude(status="complete").exists():
        if time.monotonic() > began + seconds:
            return
        time.sleep(0.02)
    took = time.monotonic() - began
    ledger.write("burst", instance=prefix, step=f"{took:.3f}", attempt=round(count * steps / took))
