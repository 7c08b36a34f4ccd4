"""A shift returns memory once a burst is over: when it has grown, when it is idle, and not too often."""

from __future__ import annotations

import ctypes
import sys

import pytest

from engine.worker import idle_memory
from engine.worker.idle_memory import GROWTH_KB, QUIET_SECONDS, RARELY, IdleMemory, return_memory

START_KB = 50_000
TICK = 0.25


class Process:
    """The memory of a process, and how often some of it was returned."""

    def __init__(self, *, seconds: float = 0.0) -> None:
        self.now = 0.0
        self.kb = START_KB
        self.returned = 0
        self.seconds = seconds  # that it takes to return memory
        self.memory = IdleMemory(self.give, lambda: self.kb, lambda: self.now)
        self.look()

    def give(self) -> None:
        self.returned += 1
        self.kb = START_KB + 100
        self.now += self.seconds

    def look(self, *, after: float = 0.0, held: int = 0) -> None:
        self.now += after
        self.memory.look(held=held)

    def burst(self, *, after: float = 0.0, grows_by: int = 2 * GROWTH_KB) -> None:
        """Claim an instance that has left by the next look."""
        self.memory.claimed(1)
        self.kb = START_KB + grows_by
        self.look(after=after)


def test_memory_is_returned_once_after_a_burst() -> None:
    process = Process()
    process.burst()
    for _ in range(20):
        process.look(after=TICK)
    assert process.returned == 1


def test_nothing_is_returned_while_instances_come_or_are_held() -> None:
    process = Process()
    for _ in range(40):
        process.burst(after=TICK)
    for _ in range(40):
        process.look(after=TICK, held=1)
    process.look(after=QUIET_SECONDS / 2)
    assert process.returned == 0
    process.look(after=QUIET_SECONDS / 2)
    assert process.returned == 1


def test_a_shift_that_has_hardly_grown_is_left_alone() -> None:
    process = Process()
    process.burst(grows_by=GROWTH_KB)
    process.look(after=QUIET_SECONDS)
    assert process.returned == 0


def test_a_shift_that_has_claimed_nothing_is_left_alone() -> None:
    process = Process()
    process.kb = START_KB + 2 * GROWTH_KB  # by something else
    process.look(after=10 * QUIET_SECONDS)
    assert process.returned == 0


def test_returning_memory_takes_no_more_than_its_share_of_the_time() -> None:
    process = Process(seconds=1.0)
    process.burst()
    process.look(after=QUIET_SECONDS)
    process.burst()
    process.look(after=RARELY - 2)
    assert process.returned == 1
    process.look(after=2)
    assert process.returned == 2


@pytest.mark.parametrize("platform", ["darwin", "linux"])
def test_a_c_library_without_malloc_trim_is_no_error(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    return_memory()
    assert idle_memory._find_trim() is None
