"""Clusters on machines whose way to the database breaks, stalls, is slow, and comes back.

Both the clusters and the Studio take the same way here, or the clusters alone, while others start instances.
"""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from studio.embedded import DATABASE, USER, EmbeddedServer, socket_dir
from tests.live import PROJECT, free_port, status_of
from tests.process.clusters import Cluster, wait_until
from tests.process.conftest import server_on_a_copy, url_of
from tests.process.customer import Customer, assert_nothing_is_lost_or_repeated, begun
from tests.process.network import Network

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

AWAY = 4.0  # seconds
BACK_WITHIN = 5.0  # seconds, after the link has come back
LATENCY = 0.1  # each way
SOCKET = ".s.PGSQL.5432"
LOST, BACK = "the shift lost its database: ", "the shift has its database again"

Break = Callable[[Network], None]


@pytest.fixture
def server(migrated_home: Path) -> Iterator[EmbeddedServer]:
    with server_on_a_copy(migrated_home) as server:
        yield server


@pytest.fixture
def network(server: EmbeddedServer) -> Iterator[Network]:
    with Network(socket_dir(server.home) / SOCKET) as network:
        yield network


@pytest.fixture
def lease() -> float:
    """How long a silent worker keeps its instances, in seconds."""
    return 30.0


@pytest.fixture
def clusters(
    server: EmbeddedServer, network: Network, tmp_path: Path, lease: float
) -> Iterator[list[Cluster]]:
    """Two machines with workers, which reach the database by the network; the test reaches it directly."""
    far = f"postgresql://{USER}@127.0.0.1:{network.port}/{DATABASE}"
    found = [Cluster(far, tmp_path, size=2, REPRISE_LEASE=str(lease)) for _ in range(2)]
    for cluster in found:
        cluster.dsn = url_of(server)
        cluster.notes = tmp_path / "notes"
    try:
        for cluster in found:
            cluster.launch()
        wait_until(lambda: all(cluster.shifts() for cluster in found))
        yield found
    finally:
        for cluster in found:
            cluster.end()


def logs(clusters: list[Cluster]) -> list[str]:
    return [cluster.log.read_text() for cluster in clusters]


@pytest.mark.parametrize("fault", [Network.cut, Network.stall], ids=["cut", "stall"])
def test_work_goes_on_soon_after_the_link_is_back(
    network: Network, clusters: list[Cluster], fault: Break
) -> None:
    with Customer(clusters[0], every=0.1, seconds=0.1) as customer:
        wait_until(lambda: len(begun(clusters[0])) > 40)
        fault(network)
        time.sleep(AWAY)
        before = len(begun(clusters[0]))
        network.mend()
        mended_at = time.monotonic()
        wait_until(lambda: len(begun(clusters[0])) > before + 10)
        assert time.monotonic() - mended_at < BACK_WITHIN, logs(clusters)
        wait_until(lambda: len(begun(clusters[0])) > before + 60)
    assert_nothing_is_lost_or_repeated(clusters[0], customer)
    if fault is Network.cut:
        for log in logs(clusters):
            assert LOST in log
            assert BACK in log.rpartition(LOST)[2], log


# What is swallowed is acknowledged here, so TCP notices nothing: only the lease says that no answer comes.
@pytest.mark.parametrize("lease", [4.0])
def test_work_goes_on_after_the_network_has_forgotten_its_connections(
    network: Network, clusters: list[Cluster], lease: float
) -> None:
    with Customer(clusters[0], every=0.1, seconds=0.1) as customer:
        wait_until(lambda: len(begun(clusters[0])) > 40)
        network.stall()
        time.sleep(1)
        before = len(begun(clusters[0]))
        network.forget()
        forgotten_at = time.monotonic()
        wait_until(lambda: len(begun(clusters[0])) > before + 60)
        assert time.monotonic() - forgotten_at < lease + BACK_WITHIN, logs(clusters)
    assert_nothing_is_lost_or_repeated(clusters[0], customer)
    assert all(f"no answer for {lease:g} s" in log for log in logs(clusters))


def test_a_slow_network_only_costs_time(network: Network, clusters: list[Cluster]) -> None:
    network.latency = LATENCY
    with Customer(clusters[0], every=0.1, seconds=0.1) as customer:
        wait_until(lambda: len(begun(clusters[0])) > 20)
    assert_nothing_is_lost_or_repeated(clusters[0], customer)
    statuses = clusters[0].query("SELECT DISTINCT status FROM engine_attempt")
    assert statuses == [("complete",)], logs(clusters)


def test_one_machine_that_is_cut_off_leaves_its_work_to_the_other(
    server: EmbeddedServer, network: Network, clusters: list[Cluster], tmp_path: Path
) -> None:
    near = Cluster(url_of(server), tmp_path, size=2)
    near.notes = clusters[0].notes
    try:
        near.launch()
        wait_until(near.shifts)
        with Customer(near, every=0.1, seconds=0.1) as customer:
            wait_until(lambda: len(begun(near)) > 40)
            network.cut()
            before = len(begun(near))
            wait_until(lambda: len(begun(near)) > before + 60)
            network.mend()
            wait_until(lambda: len(begun(near)) > before + 120)
        assert_nothing_is_lost_or_repeated(near, customer)
    finally:
        near.end()


def test_the_studio_is_back_soon_after_the_link(network: Network, clusters: list[Cluster]) -> None:
    port = free_port()
    variables = clusters[0].variables | {"REPRISE_ROLE": "web", "PORT": str(port)}
    web = subprocess.Popen(
        [sys.executable, "-m", "daphne", "-p", str(port), "studio.asgi:application"],
        cwd=PROJECT,
        env=variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # With a session's cookie the Studio has to ask the database.
    cookie = {"Cookie": f"reprise-session={32 * 'f'}"}
    page = urllib.request.Request(f"http://127.0.0.1:{port}/instances/", headers=cookie)

    try:
        wait_until(lambda: status_of(page) == 200)
        network.cut()
        wait_until(lambda: status_of(page) == 503)
        network.mend()
        mended_at = time.monotonic()
        wait_until(lambda: status_of(page) == 200)
        assert time.monotonic() - mended_at < BACK_WITHIN + 4  # one request may wait for the pool for 4 s
    finally:
        web.terminate()
        web.wait(60)
