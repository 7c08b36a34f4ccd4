"""When the lease of a living owner is over: not by the database's clock alone."""

from __future__ import annotations

from engine.worker.database.leases import Leases

LEASE, SWEEP = 30.0, 5.0
SECOND = 1_000_000
HOUR = 3600 * SECOND
OWNER, KEY = 7, 1


class Watcher:
    """Looks every five seconds, as a sweep does, at one owner of one instance."""

    def __init__(self) -> None:
        self.leases = Leases(LEASE)
        self.now = 100.0

    def look(self, wake_us: int, *, is_free: bool = True) -> list[dict[str, object]]:
        self.now += SWEEP
        if self.leases.see_beats([(OWNER, wake_us)], self.now):
            self.leases.see_free([(KEY, OWNER, wake_us)] if is_free else [], self.now)
        return self.leases.over(self.now)


def test_an_owner_that_beats_loses_nothing_wherever_its_clock_is_set() -> None:
    watcher = Watcher()
    for wake_us in (30 * SECOND, 35 * SECOND, HOUR, HOUR + 5 * SECOND, 45 * SECOND, 50 * SECOND):
        assert watcher.look(wake_us) == []


def test_what_a_silent_owner_has_not_renewed_is_over_when_its_time_is() -> None:
    watcher = Watcher()
    looks = [watcher.look(30 * SECOND) for _ in range(8)]
    assert looks[:3] == [[]] * 3
    assert looks[3] == [{"key": KEY, "wake_us": 30 * SECOND, "whenever": False}]
    # After a whole lease without a beat the database's clock does not matter: it may have been set back.
    assert looks[6] == [{"key": KEY, "wake_us": 30 * SECOND, "whenever": True}]


def test_a_row_that_was_locked_until_now_is_left_to_its_owner_for_another_look() -> None:
    watcher = Watcher()
    for _ in range(10):
        assert watcher.look(30 * SECOND, is_free=False) == []
    assert watcher.look(30 * SECOND) == []
    assert [one["whenever"] for one in watcher.look(30 * SECOND)] == [True]


def test_a_row_that_was_renewed_between_two_looks_is_not_over() -> None:
    """Also if another row of the same owner has the latest lease: it was locked when the clock was set back."""
    leases = Leases(LEASE)
    for look in range(10):
        now = look * SWEEP
        leases.see_beats([(OWNER, HOUR)], now)
        leases.see_free([(KEY, OWNER, look * 5 * SECOND)], now)
        assert leases.over(now) == []


def test_two_looks_in_one_moment_are_one() -> None:
    watcher = Watcher()
    for _ in range(2):
        watcher.look(30 * SECOND)
    leases, now = watcher.leases, watcher.now + LEASE
    for _ in range(3):
        assert leases.see_beats([(OWNER, 30 * SECOND)], now) == [OWNER]
        leases.see_free([(KEY, OWNER, 30 * SECOND)], now)
        assert leases.over(now) == []


def test_a_clock_that_is_set_back_is_noticed_and_so_may_it_have_been_before_the_first_look() -> None:
    leases = Leases(LEASE)
    assert leases.see_clock(HOUR, 0.0)
    assert not leases.see_clock(HOUR + 5 * SECOND, 5.0)
    assert not leases.see_clock(2 * HOUR, 10.0)
    assert leases.see_clock(HOUR, 15.0)
