"""Everything works through PgBouncer in session mode; in transaction mode it does not, and `check` says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from studio.embedded import EmbeddedServer
from tests.deploy.pgbouncer import running
from tests.live import PROJECT
from tests.process.clusters import Cluster, wait_until
from tests.process.conftest import server_on_a_copy

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

NEVER = 3600.0  # seconds: a body that does not end within a test
SWEEP = 5.0  # seconds until a worker looks without having been notified

# Starts, events and their races, sleeps, children, atomic steps: what uses the most of PostgreSQL.
CASES = ("test_events.py", "test_sleep.py", "test_children.py", "test_atomic.py")
# It changes the role for sessions that begin from then on, and PgBouncer has one that began before.
NOT_THIS = "tests/conformance/test_atomic.py::test_a_stricter_isolation_is_refused"


@pytest.fixture(scope="module")
def server(migrated_home: Path) -> Iterator[EmbeddedServer]:
    with server_on_a_copy(migrated_home) as server:
        yield server


@pytest.fixture
def pooled(server: EmbeddedServer) -> Iterator[str]:
    with running(server) as url:
        yield url


@pytest.fixture
def cluster(pooled: str, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(pooled, tmp_path)
    try:
        yield cluster.start()
    finally:
        cluster.end()


def manage(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(PROJECT / "manage.py"), *arguments],
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"], "DATABASE_URL": url, "SECRET_KEY": "0123456789" * 6},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_workers_are_notified_and_take_over_from_a_killed_one(cluster: Cluster) -> None:
    cluster.begin("errand", "first")
    cluster.wait_for_status("first", "complete")
    began = time.monotonic()
    for number in range(5):
        cluster.begin("errand", f"quick-{number}")
        cluster.wait_for_status(f"quick-{number}", "complete")
    assert time.monotonic() - began < SWEEP, "each waited for a sweep: nobody was notified"

    cluster.begin("errand", "long", seconds=NEVER)
    wait_until(lambda: len(cluster.workers_at("long")) == 1)
    (victim,) = cluster.workers_at("long")
    killed_at = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    cluster.wait_for_status("long", "complete")
    assert time.monotonic() - killed_at < 15, "the lock of the dead worker was kept for a lease"
    assert cluster.query("SELECT status, number FROM engine_attempt ORDER BY started_at DESC LIMIT 1") == [
        ("complete", 2)
    ]


def test_the_web_process_starts_and_keeps_to_the_timeouts_of_its_role(pooled: str) -> None:
    """PgBouncer drops the `options` with which the web process asks for them."""
    ask = "from django.db import connection as c; print(c.cursor().execute('SHOW statement_timeout').fetchone())"
    with psycopg.connect(pooled, autocommit=True) as connection:
        connection.execute("ALTER ROLE reprise SET statement_timeout = '30s'")
        try:
            done = subprocess.run(
                [sys.executable, "manage.py", "shell", "--no-imports", "-c", ask],
                cwd=PROJECT,
                env={
                    "PATH": os.environ["PATH"],
                    "DATABASE_URL": pooled,
                    "SECRET_KEY": "0123456789" * 6,
                    "REPRISE_ROLE": "web",
                },
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        finally:
            connection.execute("ALTER ROLE reprise RESET statement_timeout")
    assert (done.returncode, done.stdout.strip()) == (0, "('30s',)"), done.stderr


@pytest.mark.long
def test_a_sample_of_the_conformance_cases_passes_through_it(server: EmbeddedServer) -> None:
    with running(server) as url:
        done = subprocess.run(
            [
                *(
                    sys.executable,
                    "-m",
                    "pytest",
                    "-q",
                    "-p",
                    "no:cacheprovider",
                    "--create-db",
                    "--reuse-db",
                ),
                *(f"tests/conformance/{name}" for name in CASES),
                f"--deselect={NOT_THIS}",
            ],
            cwd=PROJECT,
            env={
                **{
                    name: os.environ[name]
                    for name in ("PATH", "HOME", "LANG", "TMPDIR")
                    if name in os.environ
                },
                "DATABASE_URL": url,
                "REPRISE_TEST_PROFILE": "shift",
            },
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def test_check_warns_of_a_pooler_by_its_port(tmp_path: Path) -> None:
    done = manage("postgresql://reprise@127.0.0.1:6432/reprise", "check")
    assert "engine.W008" in done.stderr, done.stderr
    assert "session mode" in done.stderr


def test_in_transaction_mode_a_worker_cannot_keep_its_lock(server: EmbeddedServer) -> None:
    """Why only session mode will do: locks and LISTEN stay with a server connection that others get next."""
    both_get_it = {"session": False, "transaction": True}
    for mode, is_shared in both_get_it.items():
        with (
            running(server, **{"pool_mode = session": f"pool_mode = {mode}"}) as url,
            psycopg.connect(url, autocommit=True) as worker,
            psycopg.connect(url, autocommit=True) as other,
        ):
            assert worker.execute("SELECT pg_try_advisory_lock(7)").fetchone() == (True,)
            assert other.execute("SELECT pg_try_advisory_lock(7)").fetchone() == (is_shared,), mode


def test_in_transaction_mode_nothing_runs_and_the_log_says_so(server: EmbeddedServer, tmp_path: Path) -> None:
    with running(server, **{"pool_mode = session": "pool_mode = transaction"}) as url:
        cluster = Cluster(url, tmp_path)
        try:
            cluster.launch()
            cluster.begin("errand", "waiting")
            wait_until(lambda: cluster.log.read_text().count("It must run in session mode.") > 5)
            assert cluster.query("SELECT status FROM engine_instance WHERE id = 'waiting'") == [("queued",)]
            assert cluster.noted() == []
        finally:
            cluster.end()
