"""Shifts in a real cluster: started when they are missing, taken over when they die, ended when it stops."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from tests import possible
from tests.process.apps import GRACE
from tests.process.clusters import SOON, Cluster, wait_until

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

NEVER = 3600.0  # seconds: a body that does not end within a test
LEASE = 30.0


@pytest.mark.first_tier
def test_an_instance_runs_at_once_although_the_cluster_was_idle(shared_cluster: Cluster) -> None:
    shared_cluster.begin("errand", "first")
    shared_cluster.wait_for_status("first", "complete")
    shared_cluster.begin("errand", "second")
    shared_cluster.wait_for_status("second", "complete")
    ((waited,),) = shared_cluster.query(
        "SELECT extract(epoch FROM started_at - created_at)::float8 FROM engine_instance WHERE id = 'second'"
    )
    assert (
        waited < 2.5
    )  # without a hint it would wait for the next sweep, 5 s after the one that found the first


def test_a_cluster_says_of_itself_what_tests_take_for_possible(shared_cluster: Cluster) -> None:
    """The pages show workers and busy slots by these rows; tests of pages plant no others."""
    shared_cluster.begin("errand", "one")
    shared_cluster.wait_for_status("one", "complete")
    assert shared_cluster.query("SELECT count(*) > 0 FROM engine_worker") == [(True,)]
    for one in possible.WORKERS:
        assert shared_cluster.query(one.query.replace("%%", "%")) == [], one.sentence


def test_a_burst_uses_every_place_and_leaves_a_worker_for_ordinary_tasks(cluster: Cluster) -> None:
    for number in range(130):
        cluster.begin("errand", f"e{number}", seconds=NEVER)
    wait_until(lambda: len(cluster.workers_at("e")) == 2)
    cluster.note("meanwhile")
    cluster.wait_for("meanwhile")


@pytest.mark.first_tier
def test_an_instance_goes_on_elsewhere_when_its_worker_is_killed(cluster: Cluster) -> None:
    cluster.begin("errand", "one", seconds=NEVER)
    wait_until(lambda: len(cluster.workers_at("one")) == 1)
    (victim,) = cluster.workers_at("one")
    began = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    cluster.wait_for_status("one", "complete")
    assert (
        time.monotonic() - began < LEASE / 2
    )  # for which nothing waits: the new worker says that one has died
    assert len(cluster.workers_at("one")) == 2


def test_an_instance_goes_on_in_the_next_cluster_when_all_of_one_is_killed(
    cluster: Cluster, make_cluster: Callable[[], Cluster]
) -> None:
    cluster.begin("errand", "one", seconds=NEVER)
    wait_until(lambda: len(cluster.workers_at("one")) == 1)
    os.kill(cluster.main, signal.SIGKILL)
    assert cluster.left() == {}
    make_cluster()
    cluster.wait_for_status("one", "complete")


def test_a_stop_gives_back_what_does_not_end_within_the_grace(impatient_cluster: Cluster) -> None:
    cluster = impatient_cluster
    # One can be cancelled; the other is a thread, which cannot be interrupted.
    cluster.begin("errand", "one", seconds=NEVER)
    cluster.begin("blocking-errand", "two", seconds=NEVER)
    wait_until(lambda: cluster.workers_at("one") and cluster.workers_at("two"))
    assert cluster.stop() > GRACE
    assert cluster.left() == {}
    assert cluster.query("SELECT status, owner, wake_at <= clock_timestamp() FROM engine_instance") == [
        ("queued", None, True),
        ("queued", None, True),
    ]


def test_a_stop_waits_for_a_body_that_ends_within_the_grace(cluster: Cluster) -> None:
    cluster.begin("blocking-errand", "one", seconds=2.0)
    wait_until(lambda: len(cluster.workers_at("one")) == 1)
    cluster.stop()
    assert cluster.query("SELECT status, output::text FROM engine_step") == [("complete", '"one"')]


def test_a_patient_stop_waits_for_every_body_and_claims_nothing(impatient_cluster: Cluster) -> None:
    cluster = impatient_cluster
    cluster.begin("blocking-errand", "long", seconds=GRACE + 3)
    wait_until(lambda: len(cluster.workers_at("long")) == 1)
    assert cluster.process is not None
    cluster.process.send_signal(signal.SIGUSR1)
    time.sleep(1)
    cluster.begin("errand", "late")
    assert cluster.process.wait(timeout=60) == 0
    assert cluster.query("SELECT status, output::text FROM engine_step") == [("complete", '"long"')]
    assert cluster.query("SELECT status FROM engine_instance WHERE id = 'late'") == [("queued",)]
    assert cluster.left() == {}


def test_a_patient_stop_becomes_an_ordinary_one_when_it_is_told_so(impatient_cluster: Cluster) -> None:
    cluster = impatient_cluster
    cluster.begin("errand", "one", seconds=NEVER)
    wait_until(lambda: cluster.workers_at("one"))
    assert cluster.process is not None
    cluster.process.send_signal(signal.SIGUSR1)
    time.sleep(2)
    assert cluster.process.poll() is None
    assert cluster.stop() > GRACE
    assert cluster.query("SELECT status, owner FROM engine_instance") == [("queued", None)]
    assert cluster.left() == {}


def test_a_stop_ends_a_worker_whose_loop_is_held_up(impatient_cluster: Cluster) -> None:
    cluster = impatient_cluster
    cluster.begin("rude-errand", "one", seconds=NEVER)
    wait_until(lambda: len(cluster.workers_at("one")) == 1)
    cluster.stop()
    assert cluster.left() == {}
    assert "did not stop within" in cluster.log.read_text()


def test_a_worker_whose_threads_are_all_stuck_is_replaced(impatient_cluster: Cluster) -> None:
    cluster = impatient_cluster
    # A worker has 16 threads; further bodies would wait for one forever. One of two workers gets 20.
    for number in range(40):
        cluster.begin("endless-errand", f"e{number}", seconds=NEVER)
    wait_until(lambda: len(cluster.workers_at("e")) > 0)
    first = cluster.workers_at("e")
    wait_until(lambda: not first <= set(cluster.children()))
    cluster.begin("errand", "after")
    cluster.wait_for_status("after", "complete")


def test_a_cluster_with_an_idle_shift_stops_at_once(cluster: Cluster) -> None:
    cluster.begin("errand", "one")
    cluster.wait_for_status("one", "complete")
    assert cluster.stop(signal.SIGINT) < SOON
