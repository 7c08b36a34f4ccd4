"""The parts of a cluster that must not keep what a killed process held."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait

import pytest

from engine.worker.cluster import guardian
from engine.worker.cluster.deadline import Deadline
from engine.worker.cluster.process_locks import Flag, Locks
from engine.worker.database import heartbeat
from tests.shifts import wait_until

FORK = multiprocessing.get_context("fork")


@contextmanager
def forked(work: Callable[[], object]) -> Iterator[int]:
    """Run `work` in a child that is killed after the block."""
    child = FORK.Process(target=work)
    child.start()
    assert child.pid is not None
    try:
        yield child.pid
    finally:
        child.kill()
        child.join()


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    # Nothing may rely on dead processes being reaped first.
    deadline = time.monotonic() + 60
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        assert time.monotonic() < deadline


def test_a_flag_is_set_for_everybody_and_for_good() -> None:
    flag = Flag()
    assert not flag.is_set()
    assert not flag.wait(0.01)
    with forked(flag.set):
        assert flag.wait(60)
    flag.set()
    assert flag.is_set()
    assert flag() is True


def test_a_flag_is_set_although_those_who_wait_for_it_were_killed() -> None:
    flag = Flag()
    with forked(flag.wait) as waiting:
        time.sleep(0.05)
        kill(waiting)
    # multiprocessing.Event would wait here for the dead to wake up.
    flag.set()
    assert flag.is_set()


def test_the_lock_of_a_killed_worker_is_free() -> None:
    timer, has_it = Deadline("f", -1), Flag()

    def hold() -> None:
        with timer.get_lock():
            has_it.set()
            time.sleep(60)

    with forked(hold) as holder:
        assert has_it.wait(60)
        kill(holder)
        with timer.get_lock():
            assert timer.value == -1


def test_a_worker_waits_until_the_sentinel_has_counted() -> None:
    timer, counting, done = Deadline("f", -1), Flag(), Flag()

    def finish() -> None:
        counting.wait()
        timer.value = -2
        done.set()

    with forked(finish):
        with timer.get_lock():
            counting.set()
            timer.value -= 1  # does not let go of the lock
            assert not done.wait(0.1)
            assert timer.value == -1
        assert done.wait(60)
        assert timer.value == -2


@pytest.mark.parametrize("step", [0.5, 0.3, 0.0001])
def test_a_worker_is_out_of_time_by_the_clock_however_often_the_sentinel_counts(step: float) -> None:
    timer, said = Deadline("f", -1), Flag()

    def begin() -> None:
        timer.value = 0.2
        timer.value += 0.3  # as django-q does
        said.set()

    began = time.monotonic()
    with forked(begin):
        assert said.wait(60)
    while timer.value > 0:
        timer.value -= step
        time.sleep(0.001)
        assert time.monotonic() - began < 30
    assert time.monotonic() - began > 0.4
    # django-q ends a worker whose time is exactly 0.
    assert timer.value == 0


def test_a_worker_may_say_that_it_is_idle_or_recycled() -> None:
    timer, said = Deadline("f", -1), Flag()

    def say() -> None:
        timer.value = -2
        said.set()

    with forked(say):
        assert said.wait(60)
    assert timer.value == -2


def test_a_lock_is_taken_until_its_holder_leaves_or_dies() -> None:
    locks, has_them, leaves = Locks(), Flag(), Flag()

    def hold() -> None:
        assert locks.take(1)
        assert locks.take(2)
        has_them.set()
        leaves.wait()
        locks.release(1)
        time.sleep(60)

    with forked(hold) as holder:
        assert has_them.wait(60)
        assert not locks.take(1)
        leaves.set()
        locks.wait(1)
        locks.release(1)
        assert not locks.take(2)
        kill(holder)
        assert locks.take(2)


def test_a_guarded_process_dies_with_its_parent() -> None:
    reader, writer = FORK.Pipe(duplex=False)

    def parent() -> None:
        child = guardian.Process(target=time.sleep, args=(60,))
        child.start()
        writer.send(child.pid)
        time.sleep(60)

    with forked(parent) as pid:
        assert reader.poll(60)
        child = reader.recv()
        os.kill(child, 0)
        kill(pid)
        deadline = time.monotonic() + 30  # by itself it would live for 60
        while _lives(child):
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.mark.parametrize(("seconds", "is_alive"), [(0.03, False), (60, True)])
def test_a_process_that_has_closed_its_files_is_seen_to_die(seconds: float, is_alive: bool) -> None:
    def die_slowly() -> None:
        os.closerange(3, 256)
        time.sleep(seconds)
        os._exit(0)

    child = guardian.Process(target=die_slowly)
    child.start()
    assert wait([child.sentinel], 60)
    assert child.is_alive() == is_alive
    child.kill()
    child.join()


def test_a_process_whose_parent_is_gone_already_does_not_begin() -> None:
    def orphan() -> None:
        guardian.die_with(parent=1 if os.getppid() != 1 else 2)
        os._exit(0)

    child = FORK.Process(target=orphan)
    child.start()
    child.join(60)
    assert child.exitcode == 1


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123 - gone at any moment
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _raises(reason: str) -> None:
    raise RuntimeError("can't start new thread")


class _Hangs(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        time.sleep(60)


@pytest.mark.parametrize(
    ("handler", "on_stall"), [(logging.NullHandler(), _raises), (_Hangs(), lambda reason: None)]
)
def test_a_process_whose_loop_stands_still_ends_although_nobody_can_be_told(
    handler: logging.Handler, on_stall: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "STALL_SECONDS", 0.1)
    monkeypatch.setattr(heartbeat, "TICK_SECONDS", 0.05)
    monkeypatch.setattr(heartbeat, "LAST_SECONDS", 0.1)

    def stand_still() -> None:
        heartbeat.log.addHandler(handler)
        heartbeat.Heartbeat(1, lambda: 0.0, on_stall).start()
        time.sleep(60)

    with forked(stand_still) as pid:
        wait_until(
            lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None,
            what="its end",
        )
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        assert ended.si_status == signal.SIGKILL
