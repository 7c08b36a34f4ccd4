"""The database goes away and comes back: the cluster stays, and continues within seconds."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.embedded import DATABASE, USER, EmbeddedServer, socket_dir
from tests.process.apps import LOOK
from tests.process.clusters import PATIENCE, SOON, Cluster, wait_until
from tests.process.conftest import server_on_a_copy

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

NEVER = 3600.0  # seconds: a body that does not end within a test
LEASE = 30.0


@pytest.fixture
def server(migrated_home: Path) -> Iterator[EmbeddedServer]:
    """A server of the test's own, to crash."""
    with server_on_a_copy(migrated_home) as server:
        yield server


@pytest.fixture
def cluster(server: EmbeddedServer, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(f"postgresql://{USER}@/{DATABASE}?host={socket_dir(server.home)}", tmp_path)
    try:
        yield cluster.start()
    finally:
        cluster.end()


def crash(server: EmbeddedServer) -> None:
    assert server.process is not None
    server.process.send_signal(signal.SIGQUIT)
    server.process.wait(PATIENCE)


def test_work_goes_on_within_seconds_after_the_database_crashed(
    server: EmbeddedServer, cluster: Cluster
) -> None:
    cluster.begin("errand", "one", seconds=NEVER)
    wait_until(lambda: len(cluster.workers_at("one")) == 1)
    processes = cluster.children()
    crash(server)
    time.sleep(1)
    server.start()
    began = time.monotonic()
    cluster.note("after the crash")
    cluster.wait_for("after the crash")
    # The first body is lost, and nothing waits for its lease; the second one is short.
    cluster.wait_for_status("one", "complete")
    assert time.monotonic() - began < LEASE / 2
    assert cluster.children() == processes


def test_a_cluster_without_a_database_stops_soon(server: EmbeddedServer, cluster: Cluster) -> None:
    crash(server)
    time.sleep(1)
    assert cluster.stop() < SOON
    assert cluster.left() == {}


def test_a_cluster_whose_database_does_not_answer_stops_all_the_same(impatient_cluster: Cluster) -> None:
    cluster = impatient_cluster
    # As behind a cut cable: the connection stays open, and nothing comes back.
    ((backend,),) = cluster.query(
        "SELECT pid FROM pg_stat_activity "
        "WHERE application_name = 'reprise-broker' AND datname = current_database()"
    )
    os.kill(backend, signal.SIGSTOP)
    try:
        # Long enough for the broker to have asked something.
        time.sleep(2 * LOOK)
        cluster.stop()
        assert cluster.left() == {}
    finally:
        os.kill(backend, signal.SIGCONT)


def test_a_cluster_starts_without_a_database_and_works_when_there_is_one(
    server: EmbeddedServer, cluster: Cluster
) -> None:
    cluster.stop()
    cluster.note("meanwhile")
    crash(server)
    cluster.launch()
    wait_until(lambda: len(cluster.children()) == 5)
    server.start()
    cluster.wait_for("meanwhile")
