"""The database's clock as a worker follows it: bounds that hold, however long an answer takes."""

from __future__ import annotations

import random

import pytest

from engine.worker.database import clock
from engine.worker.database.clock import DatabaseClock

SECOND = 1_000_000  # µs
AHEAD = 500 * SECOND  # the database's clock, of this machine's


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time of this machine's clock, in µs."""
    now = [10 * SECOND]
    monkeypatch.setattr(clock, "ticks_ns", lambda: now[0] * 1000)
    return now


def answer(one: DatabaseClock, ticks: list[int], *, there: int, back: int, ahead: int = AHEAD) -> None:
    """Let an answer arrive that took these times to the server and back."""
    sent = ticks[0]
    ticks[0] += there + back
    one.set(sent + there + ahead, sent_ns=sent * 1000, received_ns=ticks[0] * 1000)


def test_an_answer_that_was_held_up_does_not_move_the_clock(ticks: list[int]) -> None:
    one = DatabaseClock()
    answer(one, ticks, there=300, back=300)
    answer(one, ticks, there=20 * SECOND, back=300)
    assert 0 <= one.now_us() - (ticks[0] + AHEAD) < 50_000
    answer(one, ticks, there=300, back=20 * SECOND)
    assert 0 <= (ticks[0] + AHEAD) - one.due_us() < 50_000


def test_the_time_lies_between_the_bounds_after_any_answers(ticks: list[int]) -> None:
    dice = random.Random(7)
    one, ahead, drift = DatabaseClock(), AHEAD, 0
    for _ in range(500):
        answer(one, ticks, there=int(dice.expovariate(1e-3)), back=int(dice.expovariate(1e-3)), ahead=ahead)
        assert one.due_us() - drift <= ticks[0] + ahead <= one.now_us() + drift
        passed = dice.randrange(2 * SECOND)
        drift = passed // 1000
        ticks[0] += passed
        ahead += dice.randint(-passed, passed) // 2000  # as NTP slews
        assert one.due_us() - drift <= ticks[0] + ahead <= one.now_us() + drift


def test_a_clock_that_was_set_is_followed(ticks: list[int]) -> None:
    one = DatabaseClock()
    answer(one, ticks, there=300, back=300)
    answer(one, ticks, there=300, back=300, ahead=AHEAD + 60 * SECOND)
    assert 0 <= one.now_us() - (ticks[0] + AHEAD + 60 * SECOND) <= 600
