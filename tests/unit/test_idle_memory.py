"""A shift returns memory once a burst is over: when it has grown, when it is idle, and not too often."""

from __future__ import annotations

import ctypes
import sys

import pytest

from engine.worker import idle_memory
from engine.worker.idle_memory import GROWTH_KB, QUIET_SECONDS, RARELY, IdleMemory, return_memory

START_KB = 50_000


class Process:
    """The memory of a process, and how often some of it was returned."""

    def __init__(self) -> None:
        self.kb = START_KB
        self.returned = 0
        self.memory = IdleMemory(self.give, lambda: self.kb)
        self.memory.look(0.0, held=0)

    def give(self) -> None:
        self.returned += 1
        self.kb = START_KB + 100

    def burst(self, at: float, *, grows_to: int = START_KB + 2 * GROWTH_KB) -> None:
        """Claim an instance that has left again by the next look."""
        self.memory.claimed(1)
        self.kb = grows_to
        self.memory.look(at, held=0)


def test_memory_is_returned_once_after_a_burst() -> None:
    process = Process()
    process.burst(1.0)
    for tick in range(20):
        process.memory.look(1.0 + tick / 4, held=0)
    assert process.returned == 1


def test_nothing_is_returned_while_instances_come_or_are_held() -> None:
    process = Process()
    for tick in range(40):
        process.burst(1.0 + tick / 4)
    for tick in range(40):
        process.memory.look(11.0 + tick / 4, held=1)
    process.memory.look(20.75 + QUIET_SECONDS / 2, held=0)
    assert process.returned == 0
    process.memory.look(20.75 + QUIET_SECONDS, held=0)
    assert process.returned == 1


def test_a_shift_that_has_not_grown_or_done_nothing_is_left_alone() -> None:
    process = Process()
    process.burst(1.0, grows_to=START_KB + GROWTH_KB)
    process.memory.look(1.0 + QUIET_SECONDS, held=0)
    process.kb = START_KB + 2 * GROWTH_KB  # by something else
    process.memory.look(10.0, held=0)
    assert process.returned == 0


def test_returning_memory_takes_no_more_than_its_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter((100.0, 101.0, 200.0, 200.0))
    monkeypatch.setattr(idle_memory.time, "monotonic", lambda: next(taken))
    process = Process()
    process.burst(1.0)
    process.memory.look(5.0, held=0)  # takes a second
    process.burst(6.0)
    process.memory.look(5.0 + RARELY - 1, held=0)
    assert process.returned == 1
    process.memory.look(5.0 + RARELY, held=0)
    assert process.returned == 2


@pytest.mark.parametrize("platform", ["darwin", "linux"])
def test_a_c_library_without_malloc_trim_is_no_error(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    return_memory()
    assert idle_memory._find_trim() is None
