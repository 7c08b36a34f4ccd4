"""The main process of a cluster: when it starts, what it says, and how it ends."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from engine.version import VERSION
from studio.embedded import EmbeddedServer
from tests.live import PROJECT
from tests.process.clusters import SOON, Cluster, wait_until
from tests.process.conftest import url_of

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

FACTS = rf"Reprise {re.escape(VERSION)}, database \w+ on \S+, 3 workers, 64 slots in each, \d+ workflows?"


@pytest.fixture
def bare(process_server: EmbeddedServer, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster on a database without any table."""
    with psycopg.connect(process_server.dsn("postgres"), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS bare WITH (FORCE)")
        connection.execute("CREATE DATABASE bare")
    cluster = Cluster(url_of(process_server, "bare"), tmp_path)
    try:
        yield cluster
    finally:
        cluster.end()


def lines(cluster: Cluster) -> list[str]:
    """Return what the main process has said, from the level on."""
    said = cluster.log.read_text().splitlines()
    return [line.split(" ", 2)[2] for line in said if " reprise.cluster " in line]


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_a_cluster_that_loses_its_guard_ends_with_an_error_and_says_so(
    make_cluster: Callable[[], Cluster], sign: signal.Signals
) -> None:
    cluster = make_cluster()
    assert cluster.process is not None
    os.kill(cluster.sentinel, sign)
    assert cluster.process.wait(SOON) == 1
    assert cluster.left() == {}
    assert lines(cluster)[-1].startswith(
        "CRITICAL reprise.cluster [-] The cluster lost the process that guards its workers "
        f"(killed by {sign.name}), and all workers with it. It ends with exit code 1"
    )


def test_a_cluster_that_loses_its_guard_tells_the_others_before_it_ends(
    make_cluster: Callable[[], Cluster],
) -> None:
    cluster = make_cluster()
    assert cluster.process is not None
    with psycopg.connect(cluster.dsn, autocommit=True) as other:
        other.execute("LISTEN engine_wake")
        os.kill(cluster.sentinel, signal.SIGKILL)
        cluster.process.wait(SOON)
        assert "reap" in [told.payload for told in other.notifies(timeout=0.1)]


def test_a_cluster_says_once_that_it_has_started_and_once_that_it_has_stopped(
    make_cluster: Callable[[], Cluster],
) -> None:
    cluster = make_cluster()
    assert cluster.process is not None
    cluster.stop()
    assert cluster.process.returncode == 0
    started, stopped = lines(cluster)
    assert re.fullmatch(rf"INFO reprise\.cluster \[-\] Cluster started: {FACTS}", started)
    assert re.fullmatch(rf"INFO reprise\.cluster \[-\] Cluster stopped: {FACTS}", stopped)


def test_a_cluster_waits_for_its_tables_says_so_once_and_goes_on(bare: Cluster) -> None:
    bare.launch()
    wait_until(lambda: "python manage.py migrate" in bare.log.read_text())
    (waits,) = bare.log.read_text().splitlines()
    assert re.search(
        r"ERROR reprise\.cluster \[-\] The database lacks the migrations engine\.0001_start, .* and \d+ more\. "
        r"Run `python manage\.py migrate`\. The cluster waits until then\.$",
        waits,
    )
    assert bare.children() == []
    migrate(bare)
    bare.note("after the migration")
    bare.wait_for("after the migration")
    # It says that it has started when its workers may be at work already.
    wait_until(lambda: [line.split()[0] for line in lines(bare)] == ["ERROR", "INFO"])
    assert "does not exist" not in bare.log.read_text()


def test_a_cluster_that_waits_for_its_tables_stops_when_it_is_told(bare: Cluster) -> None:
    bare.launch()
    wait_until(lambda: "python manage.py migrate" in bare.log.read_text())
    assert bare.stop() < SOON
    assert bare.process is not None
    assert bare.process.returncode == 0


def migrate(cluster: Cluster) -> None:
    command = [sys.executable, str(PROJECT / "manage.py"), "migrate", "-v", "0"]
    subprocess.run(command, cwd=PROJECT, env=cluster.variables, check=True, timeout=120)
