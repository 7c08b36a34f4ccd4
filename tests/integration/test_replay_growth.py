"""Many waits at once: twice as many take twice the time, and not four times."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable

import pytest

from engine import WorkflowStep, workflow, workflows
from engine.replay.cycle import Cycle
from engine.replay.host import Claimed
from engine.replay.records.history import EventRecord, History, Page
from tests.hand.host import NOW_US, HandHost, answer, take

pytestmark = [pytest.mark.usefixtures("own_registry"), pytest.mark.second_tier]

FEW, MANY = 150, 1200
MOST = 2 * MANY / FEW  # times as long; were it quadratic it would be 64 times
PAGE = 100


def gathering(number: int, events: list[EventRecord], type_of: Callable[[int], str]) -> Cycle:
    """Let a handler gather so many waits, beside a body that keeps it from parking."""

    workflows._workflows.pop("gathering", None)

    @workflow(name="gathering")
    async def handler(step: WorkflowStep) -> None:
        waits = (step.wait_for_event(f"wait {n}", type_of(n), timeout=None) for n in range(number))
        await asyncio.gather(*waits, step.do("body", str))

    claimed = Claimed(1, handler.name, "one", 1, 1, 0, "null", NOW_US, None, False)
    cycle = Cycle(HandHost(), handler, claimed, History(events=Page(events, NOW_US)))
    cycle.begin()
    cycle.advance()
    return cycle


def events_of(types: list[str]) -> list[EventRecord]:
    return [EventRecord(key, one, "1", "", NOW_US) for key, one in enumerate(types, start=1)]


def begin_beside_events_of_others(number: int) -> None:
    """Nobody waits for what is buffered."""
    gathering(number, events_of(["other"] * PAGE), lambda n: f"type {n}").loop.shut()


def receive_the_last_first(number: int) -> None:
    """Each event is for the youngest of those that still wait."""
    cycle = gathering(number, [], lambda n: f"type {n}")
    answer(cycle, take(cycle))
    cycle.matching.read()
    cycle.on_events(Page(events_of([f"type {n}" for n in reversed(range(number))]), NOW_US + 1), 0)
    assert not cycle.waits
    cycle.loop.shut()


def cancel_all(number: int) -> None:
    cycle = gathering(number, [], lambda n: f"type {n % 7}")
    assert cycle.main is not None
    cycle.main.cancel()
    cycle.advance()
    assert not cycle.waits
    cycle.loop.shut()


WAYS = [begin_beside_events_of_others, receive_the_last_first, cancel_all]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_the_time_grows_no_faster_than_the_number_of_waits(way: Callable[[int], None]) -> None:
    few, many = (min(seconds(way, number) for _ in range(3)) for number in (FEW, MANY))
    assert many / few < MOST


def seconds(way: Callable[[int], None], number: int) -> float:
    """Measure what it takes of this process's time."""
    gc.collect()
    began = time.process_time()
    way(number)
    return time.process_time() - began
