"""SIGKILL of any process of a cluster: work continues, and no process is left behind."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.process.clusters import PATIENCE, SOON, WORKERS, Cluster, wait_until

pytestmark = [pytest.mark.process, pytest.mark.second_tier]


def kill(pid: int) -> None:
    """Kill it for good: on a busy machine a process lives on for a moment, and may take a task with it."""
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: is_dead(pid))


def is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_whichever_process_is_killed_while_idle_tasks_run_and_are_acknowledged(cluster: Cluster) -> None:
    """The pusher, the monitor, each worker in turn, and at last all workers at once."""
    workers = cluster.workers
    for pid in (cluster.pusher, cluster.monitor):
        check_after(cluster, pid)
    # multiprocessing's queue would stop forever with the process that waits in get().
    for pid in workers:
        others = set(cluster.children()) - {pid}
        check_after(cluster, pid)
        workers = [*(one for one in workers if one != pid), *(set(cluster.children()) - others)]
    check_after(cluster, *workers)


def check_after(cluster: Cluster, *killed: int) -> None:
    """Kill these; what is queued right after is done, and every process is replaced."""
    for pid in killed:
        kill(pid)
    texts = [f"after {killed} {number}" for number in range(20)]
    for text in texts:
        cluster.note(text)
    wait_until(lambda: set(texts) <= set(cluster.noted()))
    wait_until(lambda: cluster.queued() == 0)
    wait_until(lambda: len(set(cluster.children()) - set(killed)) == WORKERS + 2)


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
