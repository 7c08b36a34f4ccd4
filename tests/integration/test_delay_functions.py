"""Functions given as `delay`: what interrupts one must not make the pause zero, nor hide that its thread is busy."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from engine import WorkflowStep, workflow
from engine.errors import NonDeterminismError
from engine.replay import attempts, leaving
from engine.worker import delays
from engine.worker.threads import Threads
from tests.integration.test_replay_races import NOW_US, Desk, answer, cycle_of, take

pytestmark = pytest.mark.usefixtures("own_registry")

SECOND = 1_000_000


class Slow(Desk):
    """Delay functions never answer here."""

    def ask_delay(self, *args: Any) -> None:
        """Not yet."""


@pytest.mark.parametrize("how", ["stick", "give_back"])
def test_a_step_whose_delay_function_is_interrupted_still_backs_off(how: str) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("charge", str, delay=lambda ctx, error: 60)

    desk = Slow()
    cycle = cycle_of(story, desk)
    answer(cycle, take(cycle))
    operation, attempt = desk.bodies["charge"]
    attempts.settle(cycle, operation, attempt, error=RuntimeError("once"))
    if how == "stick":
        leaving.stick(cycle, NonDeterminismError("The code has changed.", recorded="", current=""))
    else:
        leaving.give_back(cycle)
    cycle.advance()
    record = cycle.writes.steps[operation.record.seq]
    assert cycle.writes.leave is not None
    assert (record.status, record.wake_us) == ("waiting", NOW_US + SECOND)


@pytest.fixture
def threads() -> Any:
    made = Threads(1)
    yield made
    made.stop()


async def test_a_thread_counts_as_stuck_while_its_delay_function_hangs(
    threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delays, "LIMIT_SECONDS", 0.05)
    let_out = threading.Event()

    def hang() -> int:
        assert let_out.wait(60)
        return 1

    def never() -> int:
        raise AssertionError("nobody waits for it any more")

    for function in (hang, never):
        with pytest.raises(TimeoutError):
            await delays.ask(function, is_async=False, threads=threads)
    assert (threads.stuck, threads.all_stuck) == (1, True)
    let_out.set()
    async with asyncio.timeout(10):
        while threads.stuck:
            await asyncio.sleep(0.001)
    monkeypatch.setattr(delays, "LIMIT_SECONDS", 10)
    assert (await delays.ask(lambda: 3, is_async=False, threads=threads)).total_seconds() == 3
    assert threads.stuck == 0
