"""Workers that drain: they claim nothing new, finish what their bodies run, and stay."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.process.clusters import Cluster, wait_until

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

NEVER = 3600.0
WHILE = 1.5  # for which nothing may happen
DRAIN = "UPDATE engine_worker SET drained_at = clock_timestamp(), drained_by = 'ana' WHERE {} RETURNING name"
RESUME = "UPDATE engine_worker SET drained_at = NULL, drained_by = '' WHERE {} RETURNING name"
NOTIFY = "SELECT pg_notify('engine_wake', 'drain')"


def names(cluster: Cluster, change: str, where: str) -> list[str]:
    """Drain or resume rows as `engine.workers` does, and wait until the processes know."""
    log = cluster.log.read_text()
    said = "claims nothing" if change is DRAIN else "claims again"
    before = log.count(said)
    found = [name for (name,) in cluster.query(change.format(where))]
    cluster.query(NOTIFY)
    expected = len(cluster.shifts()) if "cluster" in where else len(found)
    wait_until(lambda: cluster.log.read_text().count(said) >= before + expected)
    return found


def steps(cluster: Cluster, id: str) -> list[tuple[Any, ...]]:
    return cluster.query(
        "SELECT a.number, a.status FROM engine_attempt a JOIN engine_instance i ON i.key = a.instance_id "
        "WHERE i.id = %s ORDER BY a.started_at",
        [id],
    )


def status(cluster: Cluster, id: str) -> list[tuple[Any, ...]]:
    return cluster.query("SELECT status, owner IS NULL FROM engine_instance WHERE id = %s", [id])


@pytest.mark.first_tier
def test_a_drained_cluster_lets_bodies_end_claims_nothing_and_goes_on_when_resumed(cluster: Cluster) -> None:
    cluster.begin("blocking-errand", "long", seconds=4.0)
    wait_until(lambda: cluster.workers_at("long"))
    names(cluster, DRAIN, "role = 'cluster'")
    cluster.begin("errand", "late")
    wait_until(lambda: status(cluster, "long") == [("queued", True)])
    assert cluster.query(
        "SELECT s.status, s.output::text FROM engine_step s JOIN engine_instance i ON i.key = s.instance_id"
    ) == [("complete", '"long"')]
    assert steps(cluster, "long") == [(1, "complete")]
    time.sleep(WHILE)
    assert status(cluster, "late") == [("queued", True)]
    assert len(cluster.shifts()) == cluster.size - 1
    names(cluster, RESUME, "role = 'cluster'")
    cluster.wait_for_status("late", "complete")
    cluster.wait_for_status("long", "complete")
    assert len(cluster.workers_at("long")) == 1


def test_a_drained_worker_hands_on_what_it_holds_to_the_others(cluster: Cluster) -> None:
    cluster.begin("errand", "long", seconds=4.0)
    wait_until(lambda: cluster.workers_at("long"))
    (drained,) = cluster.workers_at("long")
    names(cluster, DRAIN, f"name LIKE '%:{drained}'")
    for number in range(10):
        cluster.begin("errand", f"late-{number}")
    for number in range(10):
        cluster.wait_for_status(f"late-{number}", "complete")
    assert drained not in cluster.workers_at("late")
    cluster.wait_for_status("long", "complete")
    assert steps(cluster, "long") == [(1, "complete")]


def test_a_worker_that_replaces_a_killed_one_drains_with_its_cluster(cluster: Cluster) -> None:
    cluster.begin("errand", "one", seconds=NEVER)
    wait_until(lambda: cluster.workers_at("one"))
    names(cluster, DRAIN, "role = 'cluster'")
    (killed,) = cluster.workers_at("one")
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: len(cluster.shifts()) == cluster.size - 1 and killed not in cluster.shifts())
    wait_until(lambda: status(cluster, "one") == [("queued", True)])
    time.sleep(WHILE)
    assert status(cluster, "one") == [("queued", True)]
    names(cluster, RESUME, "role = 'cluster'")
    cluster.wait_for_status("one", "complete")


def test_a_cluster_that_is_started_again_claims(
    cluster: Cluster, make_cluster: Callable[[], Cluster]
) -> None:
    names(cluster, DRAIN, "role = 'cluster'")
    os.kill(cluster.main, signal.SIGKILL)
    assert cluster.left() == {}
    cluster.begin("errand", "one")
    make_cluster()
    cluster.wait_for_status("one", "complete")


def test_rows_say_which_cluster_code_and_memory(cluster: Cluster) -> None:
    rows = cluster.query(
        "SELECT name, role, cluster, cluster_id, worker_id, version, code, memory FROM engine_worker"
    )
    ((cluster_name, cluster_id),) = [(row[0], row[4]) for row in rows if row[1] == "cluster"]
    assert {row[2:4] for row in rows} == {(cluster_name, cluster_id)}
    assert len({row[5:7] for row in rows}) == 1
    assert all(len(row[6]) == 7 and row[7] > 10_000_000 for row in rows)
