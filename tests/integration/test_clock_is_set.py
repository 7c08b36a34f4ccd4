"""The database's clock is set while a worker waits for a time by it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine import WorkflowStep, workflow
from engine.models import Step
from engine.worker.database.clock import DatabaseClock
from tests.shifts import running_shift, until, wait_for, wait_until

pytestmark = [pytest.mark.usefixtures("engine_db", "own_registry"), pytest.mark.second_tier]

HOUR_US = 3_600_000_000


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Shift the database's time, as the worker receives it, by some microseconds, and wait until it has."""
    off = 0
    heard = threading.Event()
    take_in = DatabaseClock.set

    def hear(self: DatabaseClock, database_us: int, **times: Any) -> None:
        take_in(self, database_us + off, **times)
        heard.set()

    def change(us: int) -> None:
        nonlocal off
        off = us
        for _ in range(2):  # the first answer may have been on its way
            heard.clear()
            assert heard.wait(60)

    monkeypatch.setattr(DatabaseClock, "set", hear)
    return change


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    one = threading.Event()
    yield one
    one.set()


def test_set_back_and_on_again_it_does_not_wait_for_the_hour_in_between(
    set_clock: Callable[[int], None], gate: threading.Event
) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        held = asyncio.create_task(step.do("held", lambda: until(gate)))
        await step.sleep("nap", "5s")
        await held

    instance = story.start()
    with running_shift():
        wait_until(lambda: Step.objects.filter(name="nap").exists())
        set_clock(-HOUR_US)
        time.sleep(5)  # its alarm rings, and it is not time yet
        set_clock(0)
        wait_until(lambda: Step.objects.filter(name="nap", status="complete").exists())
        gate.set()
        wait_for(instance)


def test_a_back_off_within_a_body_does_not_either(
    set_clock: Callable[[int], None], gate: threading.Event
) -> None:
    ran: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> int:
        def inner() -> int:
            ran.append(1)
            if len(ran) == 1:
                raise ConnectionError
            return len(ran)

        async def outer() -> int:
            return await step.do("inner", inner, delay="5s")

        return await step.do("outer", outer)

    instance = story.start()
    with running_shift():
        wait_until(lambda: bool(ran))
        wait_until(lambda: Step.objects.filter(name="inner", status="waiting").exists())
        set_clock(-HOUR_US)
        time.sleep(5)  # its alarm rings, and it is not time yet
        set_clock(0)
        assert wait_for(instance).output == 2
