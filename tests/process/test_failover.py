"""A standby is promoted when its primary is gone: with synchronous replication nothing that was confirmed is lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.embedded import EmbeddedServer
from tests.conftest import copy_database, home_directory
from tests.process.clusters import Cluster, wait_until
from tests.process.customer import Customer, assert_nothing_is_lost_or_repeated, begun
from tests.process.standby import Standby, url

pytestmark = [pytest.mark.process, pytest.mark.second_tier]


@pytest.fixture
def servers(migrated_home: Path) -> Iterator[tuple[EmbeddedServer, Standby]]:
    with home_directory() as directory:
        homes = [directory / "primary", directory / "standby"]
        for home in homes:
            home.mkdir(mode=0o755)
        copy_database(migrated_home, homes[0])
        primary, standby = EmbeddedServer(homes[0]), Standby(homes[1])
        primary.start()
        try:
            standby.follow(primary)
            yield primary, standby
        finally:
            standby.stop()
            primary.stop()


@pytest.fixture
def cluster(servers: tuple[EmbeddedServer, Standby], tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(url(*(server.home for server in servers)), tmp_path)
    try:
        yield cluster.start()
    finally:
        cluster.end()


def test_after_a_promotion_nothing_confirmed_is_lost_and_nothing_complete_runs_again(
    servers: tuple[EmbeddedServer, Standby], cluster: Cluster
) -> None:
    primary, standby = servers
    with Customer(cluster) as customer:
        wait_until(lambda: len(begun(cluster)) > 60)
        kill_all(primary)
        time.sleep(1)
        before = len(begun(cluster))
        promoted_at = standby.promote()
        wait_until(lambda: len(begun(cluster)) > before)
        assert time.monotonic() - promoted_at < 5
        assert cluster.query("SELECT count(*) FROM engine_instance WHERE quarantined") == [(0,)]
        wait_until(lambda: len(begun(cluster)) > before + 60)

    assert_nothing_is_lost_or_repeated(cluster, customer)
    statuses = dict(cluster.query("SELECT status, count(*) FROM engine_attempt GROUP BY status"))
    assert statuses.keys() == {"complete", "lost"}


def kill_all(server: EmbeddedServer) -> None:
    """End the server as a dead machine does: nothing is written, and no client is told."""
    assert server.process is not None
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait(60)
