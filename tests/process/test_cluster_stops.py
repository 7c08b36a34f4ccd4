"""A cluster stops soon after it is told to, with everything it started."""

import os
import signal
import time

import pytest

from tests.process.clusters import SOON, Cluster, wait_until

pytestmark = [pytest.mark.process, pytest.mark.second_tier]


def test_an_idle_cluster_stops_at_once(cluster: Cluster) -> None:
    assert cluster.stop() < SOON
    assert cluster.left() == {}
    assert cluster.query("SELECT name FROM engine_worker") == []


def test_a_cluster_stops_after_an_idle_worker_was_killed(cluster: Cluster) -> None:
    os.kill(cluster.workers[0], signal.SIGKILL)
    assert cluster.stop() < SOON
    assert cluster.left() == {}


def test_a_stop_lets_running_tasks_end_and_begins_no_queued_ones(cluster: Cluster) -> None:
    for _ in range(3):
        cluster.send("tests.process.tasks.note_and_wait", str(cluster.notes), 1.5)
    wait_until(lambda: sum(line.startswith("begun") for line in cluster.noted()) == 3)
    # What the workers' queue does not hold stays in the database.
    for number in range(20):
        cluster.note(f"later {number}")
    cluster.stop()
    assert cluster.noted().count("ended") == 3
    assert cluster.queued() > 0
    assert cluster.left() == {}


def test_two_stop_signals_are_one_stop(cluster: Cluster) -> None:
    assert cluster.process is not None
    cluster.process.send_signal(signal.SIGTERM)
    time.sleep(0.05)
    assert cluster.stop(signal.SIGINT) < SOON
    assert cluster.left() == {}
