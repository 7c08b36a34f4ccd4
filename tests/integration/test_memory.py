"""What a worker holds in memory is bounded: histories that find no room are left to others, or to later."""

from __future__ import annotations

import os
import threading
import time

import pytest

from engine import WorkflowStep, workflow
from engine.declare.registry import Workflow
from engine.models import Instance
from engine.replay.host import Claimed
from engine.replay.records.history import History, StepRecord
from engine.worker.database import memory
from engine.worker.database.memory import Memory, portion
from tests.shifts import running_shift, wait_for, wait_until
from tests.travel import skip_wait

KB = 1024


def claimed(key: int) -> Claimed:
    return Claimed(key, "w", str(key), 1, 2, 0, "", 0, None, quarantined=False)


def test_the_first_is_read_whatever_its_size_and_others_as_far_as_they_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "PORTION_BYTES", 10)
    claims = [claimed(key) for key in range(1, 6)]
    assert portion(claims, {1: 99, 2: 1}) == claims[:1]
    assert portion(claims, {1: 4, 2: 6, 3: 1}) == claims[:2]
    assert portion(claims, {}) == claims


def test_room_is_that_for_instances_of_the_size_that_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST_BYTES", 64 * KB)
    held, history = Memory(), History()
    history.add_step(StepRecord(1, 0, "do", "large", 1, output="x" * 15 * KB))
    assert (held.room(64), held.is_full) == (64, False)
    for key in range(4):
        held.take(claimed(key), history)
    assert (held.room(64), held.is_full) == (1, True)
    for _ in range(2):
        held.forget(claimed(0))
    assert not held.is_full
    for key in range(1, 4):
        held.forget(claimed(key))
    assert 4 <= held.room(64) < 64


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


@pytest.fixture
def bulky(own_registry: None, gate: threading.Event) -> Workflow[int, str]:
    @workflow
    async def bulky(step: WorkflowStep, params: int) -> str:
        for number in range(4):
            await step.do(f"value {number}", lambda: os.urandom(params // 2).hex())
        await step.sleep("park", "1h")
        await step.do("held", lambda: gate.wait(60))
        return "done"

    return bulky


@pytest.mark.usefixtures("engine_db")
def test_instances_that_wake_together_are_held_as_far_as_there_is_room_and_all_have_their_turn(
    monkeypatch: pytest.MonkeyPatch, bulky: Workflow[int, str], gate: threading.Event
) -> None:
    sizes = [100 * KB] * 2 + [900 * KB] + [100 * KB] * 5
    instances = [bulky.start(size) for size in sizes]
    with running_shift():
        for one in instances:
            wait_for(one, "waiting")
    monkeypatch.setattr(memory, "PORTION_BYTES", 500 * KB)
    monkeypatch.setattr(memory, "MOST_BYTES", 1000 * KB)
    for one in instances:
        skip_wait(one)
    running = Instance.objects.filter(status="running")
    with running_shift():
        wait_until(lambda: running.count() == 3, what="the first ones being held")
        time.sleep(0.5)
        # The third is far too large, and it is its turn; those behind it would fit, and have to wait for it.
        assert set(running.values_list("key", flat=True)) == {one.key for one in instances[:3]}
        gate.set()
        for one in instances:
            assert wait_for(one).output == "done"
