"""Shifts in a real cluster: sent when they are missed, taken over when they die, gone when it stops."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from tests.process.apps import GRACE, STUCK
from tests.process.clusters import Cluster, wait_until

pytestmark = [pytest.mark.process, pytest.mark.slow]


def test_an_instance_runs_at_once_although_the_cluster_was_idle(shared_cluster: Cluster) -> None:
    shared_cluster.begin("errand", "first")
    shared_cluster.wait_for_status("first", "complete", within=2)
    shared_cluster.begin("errand", "second")
    shared_cluster.wait_for_status("second", "complete", within=2)
    ((waited,),) = shared_cluster.query(
        "SELECT extract(epoch FROM started_at - created_at)::float8 FROM engine_instance WHERE id = 'second'"
    )
    assert waited < 0.2


def test_a_burst_uses_every_place_and_leaves_a_worker_for_ordinary_tasks(cluster: Cluster) -> None:
    for number in range(130):
        cluster.begin("errand", f"e{number}", seconds=2.0)
    wait_until(lambda: len(cluster.workers_at("e")) == 2, within=5)
    cluster.note("meanwhile")
    cluster.wait_for("meanwhile", within=1)


def test_an_instance_goes_on_elsewhere_when_its_worker_is_killed(cluster: Cluster) -> None:
    cluster.begin("errand", "one", seconds=60)
    wait_until(lambda: len(cluster.workers_at("one")) == 1, within=5)
    (victim,) = cluster.workers_at("one")
    began = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    cluster.wait_for_status("one", "complete", within=5)
    # The new worker says at once that one has died; nobody waits for the lease of 30 s.
    assert time.monotonic() - began < 3
    assert len(cluster.workers_at("one")) == 2


def test_an_instance_goes_on_in_the_next_cluster_when_all_of_one_is_killed(
    cluster: Cluster, make_cluster: Callable[[], Cluster]
) -> None:
    cluster.begin("errand", "one", seconds=60)
    wait_until(lambda: len(cluster.workers_at("one")) == 1, within=5)
    os.kill(cluster.main, signal.SIGKILL)
    assert cluster.left(within=2) == {}
    make_cluster()
    cluster.wait_for_status("one", "complete", within=5)


def test_a_stop_gives_back_what_does_not_end_within_the_grace(impatient_cluster: Cluster) -> None:
    cluster = impatient_cluster
    # One can be cancelled; the other is a thread that nobody can interrupt.
    cluster.begin("errand", "one", seconds=60)
    cluster.begin("blocking-errand", "two", seconds=60)
    wait_until(lambda: cluster.workers_at("one") and cluster.workers_at("two"), within=5)
    assert GRACE < cluster.stop() < STUCK + 3
    assert cluster.left(within=0.5) == {}
    assert cluster.query("SELECT status, owner, wake_at <= clock_timestamp() FROM engine_instance") == [
        ("queued", None, True),
        ("queued", None, True),
    ]


def test_a_stop_waits_for_a_body_that_ends_within_the_grace(cluster: Cluster) -> None:
    cluster.begin("blocking-errand", "one", seconds=2.0)
    wait_until(lambda: len(cluster.workers_at("one")) == 1, within=5)
    assert cluster.stop() < 5
    assert cluster.query("SELECT status, output::text FROM engine_step") == [("complete", '"one"')]


def test_a_stop_ends_a_worker_whose_loop_is_held_up(impatient_cluster: Cluster) -> None:
    cluster = impatient_cluster
    cluster.begin("rude-errand", "one", seconds=60)
    wait_until(lambda: len(cluster.workers_at("one")) == 1, within=5)
    assert cluster.stop() < STUCK + 3
    assert cluster.left(within=0.5) == {}
    assert "did not stop within" in cluster.log.read_text()


def test_a_worker_whose_threads_are_all_stuck_is_replaced(impatient_cluster: Cluster) -> None:
    cluster = impatient_cluster
    # A worker has 16 threads; the bodies after those wait for one, in vain. One of two workers gets 20.
    for number in range(40):
        cluster.begin("endless-errand", f"e{number}", seconds=120)
    wait_until(lambda: len(cluster.workers_at("e")) > 0, within=5)
    first = cluster.workers_at("e")
    wait_until(lambda: not first <= set(cluster.children()), within=30)
    cluster.begin("errand", "after")
    cluster.wait_for_status("after", "complete", within=30)


def test_a_cluster_with_an_idle_shift_stops_at_once(cluster: Cluster) -> None:
    cluster.begin("errand", "one")
    cluster.wait_for_status("one", "complete", within=5)
    assert cluster.stop() < 1.5
