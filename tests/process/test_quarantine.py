"""Instances that must run alone, while no shift is ever without other work."""

import json
import os
import signal

import pytest

from tests.process.clusters import Cluster, wait_until

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

BUSY = 100  # instances: more than one shift takes
NEVER = 3600.0  # seconds: a body that does not end within a test


def keep_all_shifts_busy(cluster: Cluster) -> set[int]:
    for number in range(BUSY):
        cluster.begin("errand", f"busy-{number}", seconds=NEVER)
    wait_until(lambda: len(cluster.workers_at("busy")) == 2)
    return cluster.workers_at("busy")


def plant(cluster: Cluster, workflow: str, id: str, seconds: float = 0.0) -> None:
    """Add an instance as a reaper leaves it: due, and to run alone."""
    params = json.dumps({"notes": str(cluster.notes), "name": id, "seconds": seconds})
    cluster.query(
        "WITH left_behind AS (INSERT INTO engine_instance (workflow, id, status, params, wake_at, quarantined) "
        "VALUES (%s, %s, 'queued', %s::json, clock_timestamp(), true)) SELECT pg_notify('engine_wake', 'reap')",
        [workflow, id, params],
    )


def test_what_must_run_alone_gets_a_process_of_its_own_when_all_shifts_are_busy(cluster: Cluster) -> None:
    busy = keep_all_shifts_busy(cluster)

    plant(cluster, "errand", "alone-1")
    plant(cluster, "errand", "alone-2")

    cluster.wait_for_status("alone-1", "complete")
    cluster.wait_for_status("alone-2", "complete")
    alone = cluster.workers_at("alone")
    assert alone
    assert not alone & busy
    assert cluster.query(
        "SELECT DISTINCT a.quarantined FROM engine_attempt a JOIN engine_instance i "
        "ON i.key = a.instance_id WHERE i.id LIKE 'alone-%'"
    ) == [(True,)]


def test_a_killed_process_of_those_that_run_alone_is_replaced(cluster: Cluster) -> None:
    keep_all_shifts_busy(cluster)
    plant(cluster, "errand", "alone-1", seconds=NEVER)
    wait_until(lambda: bool(cluster.workers_at("alone")))

    os.kill(cluster.workers_at("alone").pop(), signal.SIGKILL)

    cluster.wait_for_status("alone-1", "complete")
    assert cluster.query(
        "SELECT a.status, a.quarantined FROM engine_attempt a JOIN engine_instance i "
        "ON i.key = a.instance_id WHERE i.id = 'alone-1' ORDER BY number"
    ) == [("lost", True), ("complete", True)]


def test_the_process_ends_with_its_cluster(cluster: Cluster) -> None:
    keep_all_shifts_busy(cluster)
    plant(cluster, "errand", "alone-1", seconds=NEVER)
    wait_until(lambda: bool(cluster.workers_at("alone")))

    os.kill(cluster.main, signal.SIGKILL)

    assert cluster.left() == {}
