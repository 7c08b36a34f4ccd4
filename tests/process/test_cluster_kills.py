"""SIGKILL of any process of a cluster: work goes on, and nobody is left behind."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.process.clusters import PATIENCE, SOON, WORKERS, Cluster, wait_until

pytestmark = [pytest.mark.process, pytest.mark.slow]


def kill(pid: int) -> None:
    """Kill it for good: on a busy machine a process lives on for a moment, and may take a task with it."""
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: is_dead(pid))


def is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_tasks_run_after_each_idle_worker_was_killed_in_turn(cluster: Cluster) -> None:
    # multiprocessing's queue stops for ever with the one of them that waits in get().
    for turn, worker in enumerate(cluster.workers):
        kill(worker)
        cluster.note(f"after {turn}")
        cluster.wait_for(f"after {turn}")
    wait_until(lambda: len(cluster.children()) == WORKERS + 2)


def test_tasks_run_after_all_idle_workers_were_killed_at_once(cluster: Cluster) -> None:
    for worker in cluster.workers:
        kill(worker)
    cluster.note("after all")
    cluster.wait_for("after all")


def test_a_killed_pusher_is_replaced_and_tasks_run(cluster: Cluster) -> None:
    kill(cluster.pusher)
    cluster.note("after the pusher")
    cluster.wait_for("after the pusher")


def test_a_killed_monitor_is_replaced_and_tasks_are_acknowledged(cluster: Cluster) -> None:
    kill(cluster.monitor)
    for number in range(20):
        cluster.note(f"after the monitor {number}")
    cluster.wait_for("after the monitor 19")
    wait_until(lambda: cluster.queued() == 0)


def test_a_busy_worker_that_is_killed_does_not_hold_up_the_others(cluster: Cluster) -> None:
    cluster.send("tests.process.tasks.note_and_wait", str(cluster.notes), 60)
    wait_until(lambda: any("begun" in line for line in cluster.noted()))
    (begun,) = [line for line in cluster.noted() if line.startswith("begun")]
    kill(int(begun.split()[1]))
    cluster.note("after the busy one")
    cluster.wait_for("after the busy one")
    assert cluster.stop() < SOON


def test_nobody_outlives_a_killed_sentinel(cluster: Cluster) -> None:
    kill(cluster.sentinel)
    assert cluster.process is not None
    cluster.process.wait(PATIENCE)
    assert cluster.left() == {}


def test_nobody_outlives_a_killed_main_process_and_the_next_cluster_works(
    cluster: Cluster, make_cluster: Callable[[], Cluster]
) -> None:
    kill(cluster.main)
    assert cluster.process is not None
    cluster.process.wait(PATIENCE)
    assert cluster.left() == {}

    cluster.note("meanwhile")
    make_cluster()
    cluster.wait_for("meanwhile")
