"""Which shifts are sent, and when the database is asked again."""

from engine.worker.roster import (
    IDLE_PAUSE_SECONDS,
    PATIENCE_SECONDS,
    PAUSE_SECONDS,
    PROMISE_SECONDS,
    SWEEP_SECONDS,
    Roster,
)

NOBODY: frozenset[int] = frozenset()


def test_a_lone_due_row_gets_one_shift() -> None:
    roster = Roster(2)
    assert roster.fill(due=1, next_in=None, now=0) == [0]


def test_a_burst_gets_every_place() -> None:
    roster = Roster(2)
    assert roster.fill(due=3, next_in=None, now=0) == [0, 1]


def test_without_due_rows_nobody_is_sent() -> None:
    roster = Roster(2)
    assert roster.fill(due=0, next_in=0.3, now=0) == []


def test_a_place_is_not_filled_twice() -> None:
    roster = Roster(2)
    assert roster.fill(due=1, next_in=None, now=0) == [0]
    assert roster.fill(due=2, next_in=None, now=0.1) == [1]
    roster.count(frozenset({0, 1}), now=0.2)
    assert roster.fill(due=2, next_in=None, now=0.2) == []


def test_a_shift_that_never_began_is_sent_again() -> None:
    roster = Roster(1)
    roster.fill(due=1, next_in=None, now=0)
    roster.count(NOBODY, now=PROMISE_SECONDS / 2)
    assert roster.fill(due=1, next_in=None, now=PROMISE_SECONDS / 2) == []
    roster.count(NOBODY, now=PROMISE_SECONDS)
    assert roster.fill(due=1, next_in=None, now=PROMISE_SECONDS) == [0]


def test_the_next_due_row_is_waited_for_exactly_while_no_shift_runs() -> None:
    roster = Roster(2)
    roster.fill(due=0, next_in=0.123, now=10)
    assert roster.look_at == 10.123


def test_rows_are_looked_at_now_and_then_without_any_hint() -> None:
    roster = Roster(2)
    roster.fill(due=0, next_in=3600, now=10)
    assert roster.look_at == 10 + SWEEP_SECONDS


def test_a_hint_is_followed_at_once_while_no_shift_runs() -> None:
    roster = Roster(2)
    roster.fill(due=0, next_in=None, now=10)
    roster.wake(now=10.5)
    assert roster.look_at == 10.5


def test_hints_that_are_not_for_this_cluster_do_not_keep_it_busy() -> None:
    roster = Roster(2)
    roster.fill(due=0, next_in=None, now=10)
    roster.wake(now=10.001)
    assert roster.look_at == 10 + IDLE_PAUSE_SECONDS


def test_a_running_shift_has_its_chance_first() -> None:
    roster = Roster(2)
    roster.count(frozenset({0}), now=10)
    roster.fill(due=0, next_in=None, now=10)
    roster.wake(now=11)
    assert roster.patience == PATIENCE_SECONDS
    assert roster.look_at == 11 + PATIENCE_SECONDS


def test_a_stream_of_hints_is_followed_now_and_then() -> None:
    roster = Roster(2)
    roster.count(frozenset({0}), now=10)
    roster.fill(due=0, next_in=None, now=10)
    roster.wake(now=10.001)
    assert roster.look_at == 10 + PAUSE_SECONDS


def test_hints_are_of_no_interest_while_every_place_is_taken() -> None:
    roster = Roster(1)
    roster.count(frozenset({0}), now=10)
    roster.fill(due=5, next_in=None, now=10)
    roster.wake(now=11)
    assert roster.look_at == 10 + SWEEP_SECONDS


def test_a_place_that_is_left_makes_it_look_at_once() -> None:
    roster = Roster(1)
    roster.count(frozenset({0}), now=10)
    roster.fill(due=0, next_in=None, now=10)
    roster.count(NOBODY, now=11)
    assert roster.look_at == 11
    assert roster.patience == 0
