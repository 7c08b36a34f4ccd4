"""The threads of a worker: how many jobs wait, run and are stuck, whatever a job does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from engine.worker.bodies import sessions, threads
from engine.worker.bodies.threads import Threads

PATIENCE = 60


def wait_until(condition: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends_at
        time.sleep(0.001)


class Gates:
    """Jobs that run until they are released."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.opened: list[threading.Event] = []

    def job(self) -> Callable[[], None]:
        number, gate = len(self.opened), threading.Event()
        self.opened.append(gate)

        def run() -> None:
            self.begun.append(number)
            assert gate.wait(PATIENCE)

        return run

    def let_all_go(self) -> None:
        for gate in self.opened:
            gate.set()


@pytest.fixture
def gates() -> Iterator[Gates]:
    one = Gates()
    yield one
    one.let_all_go()


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[Threads]:
    monkeypatch.setattr(sessions, "close_all", lambda: None)
    monkeypatch.setattr(threads, "STUCK_SECONDS", 0.0)
    made = Threads(2, replaces_stuck=False)
    yield made
    made.stop()


@pytest.fixture
def replacing(two: Threads) -> Iterator[Threads]:
    made = Threads(2)
    yield made
    made.stop()


def counts(pool: Threads) -> tuple[int, int, int]:
    return pool.running, pool.queued, pool.stuck


def test_jobs_that_find_no_thread_are_counted_until_they_have_one(two: Threads, gates: Gates) -> None:
    for _ in range(5):
        two.submit(gates.job())
    wait_until(lambda: len(gates.begun) == 2)
    assert counts(two) == (2, 3, 0)
    gates.opened[0].set()
    wait_until(lambda: len(gates.begun) == 3)
    assert counts(two) == (2, 2, 0)
    gates.let_all_go()
    wait_until(lambda: counts(two) == (0, 0, 0))


def test_a_job_that_is_given_up_before_it_begins_never_begins_and_waits_no_more(
    two: Threads, gates: Gates
) -> None:
    jobs = [two.submit(gates.job()) for _ in range(4)]
    wait_until(lambda: len(gates.begun) == 2)
    jobs[2].give_up()
    jobs[2].give_up()
    assert (jobs[2].has_begun, counts(two)) == (False, (2, 1, 0))
    gates.let_all_go()
    wait_until(lambda: sorted(gates.begun) == [0, 1, 3])
    wait_until(lambda: counts(two) == (0, 0, 0))
    two.submit(gates.job())  # and there is a thread for it
    wait_until(lambda: 4 in gates.begun)


def test_a_thread_is_stuck_from_when_its_job_is_given_up_until_that_ends(two: Threads, gates: Gates) -> None:
    jobs = [two.submit(gates.job(), f"job {number}") for number in range(3)]
    wait_until(lambda: len(gates.begun) == 2)
    jobs[0].give_up()
    jobs[0].give_up()
    assert (counts(two), two.all_stuck) == ((2, 1, 1), False)
    jobs[1].give_up()
    assert (counts(two), two.all_stuck) == ((2, 1, 2), True)
    assert sorted(map(str, two.left)) == ["job 0", "job 1"]
    gates.opened[0].set()
    wait_until(lambda: 2 in gates.begun)
    assert (counts(two), two.all_stuck) == ((2, 0, 1), False)
    gates.let_all_go()
    wait_until(lambda: counts(two) == (0, 0, 0))
    jobs[0].give_up()  # it has ended
    assert (counts(two), two.left) == ((0, 0, 0), [])


def test_a_stuck_thread_is_replaced_until_it_comes_free(replacing: Threads, gates: Gates) -> None:
    jobs = [replacing.submit(gates.job()) for _ in range(3)]
    wait_until(lambda: len(gates.begun) == 2)
    jobs[0].give_up()
    wait_until(lambda: gates.begun == [*gates.begun[:2], 2])
    assert counts(replacing) == (3, 0, 1)
    replacing.submit(gates.job())
    assert counts(replacing) == (3, 1, 1)
    gates.opened[0].set()  # it ends, and there are enough without it
    wait_until(lambda: counts(replacing) == (2, 1, 0))
    gates.let_all_go()
    wait_until(lambda: counts(replacing) == (0, 0, 0))
    wait_until(lambda: sum(one.name.startswith("body-") for one in threading.enumerate()) == 2)


def test_as_many_threads_are_replaced_as_there_were(replacing: Threads, gates: Gates) -> None:
    jobs = [replacing.submit(gates.job(), f"job {number}") for number in range(4)]
    wait_until(lambda: len(gates.begun) == 2)
    for job in jobs[:2]:
        job.give_up()
    wait_until(lambda: counts(replacing) == (4, 0, 2))
    assert not replacing.all_stuck
    for job in jobs[2:]:
        job.give_up()
    replacing.submit(gates.job())
    assert (counts(replacing), replacing.all_stuck) == ((4, 1, 4), True)
    assert sorted(map(str, replacing.given_up)) == [f"job {number}" for number in range(4)]


def test_threads_are_saturated_when_none_has_come_free_for_a_while(replacing: Threads, gates: Gates) -> None:
    assert not replacing.is_saturated
    for _ in range(2):
        replacing.submit(gates.job())
    wait_until(lambda: replacing.is_saturated)
    gates.opened[0].set()
    wait_until(lambda: not replacing.is_saturated)
    replacing.submit(gates.job())
    assert not replacing.is_saturated  # one was free just now
    wait_until(lambda: replacing.is_saturated)


def test_all_are_stuck_only_after_a_moment(
    two: Threads, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is told to stop may need one, as when many instances are terminated at once"""
    monkeypatch.setattr(threads, "STUCK_SECONDS", 3600.0)
    jobs = [two.submit(gates.job()) for _ in range(2)]
    wait_until(lambda: len(gates.begun) == 2)
    for job in jobs:
        job.give_up()
    assert (two.stuck, two.all_stuck) == (2, False)


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt()])
def test_a_thread_and_its_count_outlive_what_a_job_raises(
    two: Threads, gates: Gates, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    begun: list[int] = []

    def fail() -> None:
        begun.append(1)
        raise error

    for _ in range(4):
        two.submit(fail, "the failing one")
    wait_until(lambda: len(begun) == 4 and counts(two) == (0, 0, 0))
    two.submit(gates.job())
    wait_until(lambda: gates.begun == [0])
    assert counts(two) == (1, 0, 0)
    assert "the failing one" in caplog.text


def test_waiting_jobs_can_be_taken_back(two: Threads, gates: Gates) -> None:
    jobs = [two.submit(gates.job()) for _ in range(5)]
    wait_until(lambda: len(gates.begun) == 2)
    jobs[3].give_up()
    assert two.withdraw() == [jobs[2], jobs[4]]
    assert counts(two) == (2, 0, 0)
    gates.let_all_go()
    wait_until(lambda: counts(two) == (0, 0, 0))
    assert sorted(gates.begun) == [0, 1]


def test_a_stop_begins_nothing_more_and_waits_for_nothing(two: Threads, gates: Gates) -> None:
    for _ in range(3):
        two.submit(gates.job(), "held")
    wait_until(lambda: len(gates.begun) == 2)
    two.stop()
    with pytest.raises(RuntimeError, match="has stopped"):
        two.submit(gates.job())
    assert two.left == ["held", "held"]
    gates.let_all_go()
    wait_until(lambda: two.left == [])
    wait_until(lambda: not any(one.name.startswith("body-") for one in threading.enumerate()))
    assert sorted(gates.begun) == [0, 1]


def test_an_idle_thread_holds_nothing_of_its_last_job(two: Threads) -> None:
    import gc
    import weakref

    class Large:
        def run(self) -> None:
            """Do nothing."""

    large = Large()
    kept = weakref.ref(large)
    two.submit(large.run)
    del large
    gc.collect()
    wait_until(lambda: kept() is None)
