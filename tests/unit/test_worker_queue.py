"""The queue between a cluster's processes, with processes that are killed while they use it."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import Empty, Full

import pytest

from engine.worker.cluster.queue import BLOCK, Queue, is_supported

pytestmark = pytest.mark.skipif(not is_supported(), reason="needs SOCK_SEQPACKET, as Linux has it")

FORK = multiprocessing.get_context("fork")


@contextmanager
def forked(work: Callable[..., None], *args: object) -> Iterator[BaseProcess]:
    child = FORK.Process(target=work, args=args, daemon=True)
    child.start()
    try:
        yield child
    finally:
        child.kill()
        child.join()


def echo(tasks: Queue, results: Queue) -> None:
    for item in iter(tasks.get, "STOP"):
        results.put((os.getpid(), item))


def take_one_and_die(queue: Queue) -> None:
    queue.get()
    os.kill(os.getpid(), signal.SIGKILL)


def put_many(queue: Queue, count: int) -> None:
    for number in range(count):
        queue.put(number)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.parametrize("item", [None, 0, "", b"\0\0", {"a": (1, 2)}, "x" * 32_768, "y" * 5_000_000])
def test_what_is_put_is_got(item: object) -> None:
    queue = Queue()
    queue.put(item)
    assert queue.get() == item


@pytest.mark.parametrize("size", [*range(BLOCK - 3, BLOCK + 4), *range(32 * 1024 - 40, 32 * 1024 + 3)])
def test_packets_of_every_length_are_counted_as_one(size: int) -> None:
    queue = Queue()
    for _ in range(3):
        queue.put(b"x" * size)
    assert queue.qsize() == 3
    assert queue.get() == b"x" * size
    assert queue.qsize() == 2


def test_items_come_in_the_order_in_which_they_were_put() -> None:
    queue = Queue()
    for number in range(2_000):
        queue.put(number)
    assert [queue.get() for _ in range(2_000)] == list(range(2_000))
    assert queue.empty()


def test_a_full_queue_takes_no_more_until_one_is_got() -> None:
    queue = Queue(maxsize=2)
    queue.put("a")
    queue.put("b")
    assert queue.full()
    with pytest.raises(Full):
        queue.put_nowait("c")
    with pytest.raises(Full):
        queue.put("c", timeout=0.01)
    queue.get()
    queue.put("c", timeout=1)
    assert [queue.get(), queue.get()] == ["b", "c"]


def test_a_writer_waits_for_room() -> None:
    queue = Queue(maxsize=3)
    with forked(put_many, queue, 50):
        until(queue.full)
        time.sleep(0.02)
        assert queue.qsize() == 3
        assert [queue.get(timeout=60) for _ in range(50)] == list(range(50))


def test_an_empty_queue_says_so_in_time() -> None:
    queue = Queue()
    began = time.monotonic()
    with pytest.raises(Empty):
        queue.get(timeout=0.05)
    assert time.monotonic() - began >= 0.05
    with pytest.raises(Empty):
        queue.get_nowait()


def test_a_queue_without_a_limit_never_keeps_its_writer_waiting() -> None:
    queue = Queue()
    for number in range(200):
        queue.put((number, "x" * 30_000))
    assert [queue.get()[0] for _ in range(200)] == list(range(200))


def test_a_writer_that_exits_leaves_nothing_unsent() -> None:
    queue = Queue()
    with forked(put_many, queue, 1_000) as writer:
        assert [queue.get(timeout=60) for _ in range(1_000)] == list(range(1_000))
        writer.join(60)
        assert writer.exitcode == 0


def test_idle_readers_that_are_killed_stop_nobody() -> None:
    tasks, results = Queue(), Queue()
    with forked(echo, tasks, results) as first, forked(echo, tasks, results) as second:
        for victim in (first, second):
            time.sleep(0.02)
            assert victim.pid is not None
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()  # until then the kernel may still hand it a packet, which dies with it
        with forked(echo, tasks, results) as third:
            tasks.put("after")
            assert results.get(timeout=60) == (third.pid, "after")


def test_a_reader_that_dies_takes_only_its_own_packet_along() -> None:
    queue = Queue(maxsize=2)
    for turn in range(10):
        queue.put("lost")
        queue.put(turn)
        with forked(take_one_and_die, queue) as reader:
            reader.join(60)
        # Nothing but the kernel counts, so the place of the lost one is free.
        assert queue.qsize() == 1
        assert queue.get() == turn


def test_each_packet_reaches_exactly_one_reader() -> None:
    tasks, results = Queue(maxsize=8), Queue()
    with forked(echo, tasks, results), forked(echo, tasks, results), forked(echo, tasks, results):
        for number in range(300):
            tasks.put(number)
        got = [results.get(timeout=60) for _ in range(300)]
    assert sorted(number for _, number in got) == list(range(300))


def test_large_packets_leave_no_open_file_behind() -> None:
    queue = Queue()
    queue.put("x" * 100_000)
    queue.get()
    gc.collect()  # what other tests have left open must not interfere
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        queue.put("x" * 100_000)
        queue.get()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_what_cannot_be_pickled_is_refused_where_it_is_put() -> None:
    queue = Queue()
    with pytest.raises((pickle.PicklingError, AttributeError)):
        queue.put(lambda: None)
    assert queue.empty()


def test_a_spawned_process_gets_the_same_queue() -> None:
    tasks, results = Queue(), Queue(maxsize=5)
    spawned = multiprocessing.get_context("spawn").Process(target=echo, args=(tasks, results), daemon=True)
    spawned.start()
    tasks.put("hello")
    assert results.get(timeout=20) == (spawned.pid, "hello")
    tasks.put("STOP")
    spawned.join(60)
    assert spawned.exitcode == 0
