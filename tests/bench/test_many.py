"""A made-up installation is one that the engine could have written, and every page can be timed on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from engine.invariants import look
from engine.values.shown import OPEN, display_status
from studio.embedded import DATABASE, USER, EmbeddedServer, socket_dir
from tests.bench.many.flows import NAMES
from tests.bench.many.shop import BURST, Shop, Size
from tests.bench.pages.asked import ASKED
from tests.live import PROJECT
from tests.possible import WORKERS

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

INSTANCES = 2_000
NOW = 1_795_608_000_000_000
KEYS = {"engine_instance": 1, "engine_generation": 1, "engine_event": 1, "engine_audit": 1}
# Whether an instance asks people is not in its row.
STATUSES = """
SELECT i.status, i.waiting_for, EXISTS (SELECT FROM engine_open_request r WHERE r.instance_id = i.key), count(*)
FROM engine_instance i GROUP BY 1, 2, 3
"""
FAILED = """
SELECT instance_id FROM engine_attempt WHERE status IN ('errored', 'timed_out', 'lost')
UNION SELECT key FROM engine_instance WHERE status = 'errored'
"""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home whose database has been filled."""
    with tempfile.TemporaryDirectory(prefix="many-") as directory:
        place = Path(directory)
        place.chmod(0o755)
        done = _run(["-m", "tests.bench.many", "--instances", str(INSTANCES)], REPRISE_HOME=str(place))
        assert done.returncode == 0, done.stderr
        yield place


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer(home)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def rows(server: EmbeddedServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server.dsn()) as connection:
        yield connection


def test_verify_finds_nothing_wrong(home: Path, server: EmbeddedServer) -> None:
    done = _run(["manage.py", "verify", "--json", "--grace", "600"], REPRISE_HOME=str(home))
    wrong = [one for one in json.loads(done.stdout) if one["count"] != 0]
    assert (wrong, done.returncode) == ([], 0), done.stderr


def test_what_has_started_run_and_ended_is_added_up(rows: psycopg.Connection) -> None:
    """As workers do; pages would read each change otherwise."""
    assert rows.execute("SELECT count(*) FROM engine_workflow_count_delta").fetchone() == (0,)
    assert rows.execute("SELECT sum(amount) FROM engine_workflow_count").fetchone() != (None,)
    ran = "SELECT count(*) FROM engine_workflow_span WHERE minutes = 1440 AND started > 0 AND steps[1] IS NOT NULL"
    assert rows.execute(ran).fetchone() != (0,)
    retried = rows.execute("SELECT sum(retries) FROM engine_workflow_span WHERE minutes = 1440").fetchone()
    assert retried not in ((0,), (None,))


def test_workers_are_possible(rows: psycopg.Connection) -> None:
    with rows.cursor() as cursor:
        found = [look(cursor, one) for one in WORKERS]
    assert [one.offenders for one in found] == [()] * len(WORKERS)


def test_every_shown_status_and_workflow_is_there(rows: psycopg.Connection) -> None:
    shown = {display_status(status, waits, asks=asks) for status, waits, asks, _ in rows.execute(STATUSES)}
    assert shown == {*OPEN, "complete", "errored", "terminated"}
    assert {name for (name,) in rows.execute("SELECT DISTINCT workflow FROM engine_instance")} == {*NAMES}


def test_there_is_as_much_as_was_asked_for(rows: psycopg.Connection) -> None:
    assert _count(rows, "SELECT FROM engine_instance") in range(
        INSTANCES, INSTANCES + 2
    )  # a child may be the last
    assert _count(rows, "SELECT FROM engine_step") == pytest.approx(10 * INSTANCES, rel=0.05)
    assert _count(rows, FAILED) == pytest.approx(INSTANCES / 5, rel=0.05)
    per_step = _count(rows, "SELECT FROM engine_attempt") / _count(
        rows, "SELECT FROM engine_step WHERE attempts > 0"
    )
    assert 1.03 < per_step < 1.07


def test_a_burst_of_errors_is_in_the_last_hour(rows: psycopg.Connection) -> None:
    burst = rows.execute(
        """
        SELECT workflow, error ->> 'step', count(*), count(DISTINCT error ->> 'message') FROM engine_instance
        WHERE status = 'errored' AND error ->> 'type' = 'PaymentGatewayError'
          AND created_at > (SELECT max(created_at) FROM engine_instance) - interval '1 hour'
          AND error ->> 'message' ~ '^Gateway eu-3 answered 503 after 30'
        GROUP BY 1, 2 ORDER BY 1
        """
    ).fetchall()
    assert [(workflow, step) for workflow, step, _, _ in burst] == [
        ("fulfil-order", "charge"),
        ("renew-subscription", "charge"),
    ]
    assert sum(count for *_, count, _ in burst) == sum(messages for *_, messages in burst) == BURST


def test_keys_are_in_order_of_time(rows: psycopg.Connection) -> None:
    """A child begins after instances with greater keys, but never by the hour that searches allow for."""
    for table, column in (
        ("engine_instance", "created_at"),
        ("engine_event", "received_at"),
        ("engine_audit", "at"),
    ):
        late = _count(
            rows,
            f"""SELECT FROM (SELECT {column}, max({column}) OVER (ORDER BY key) AS latest FROM {table}) AS row
            WHERE latest - {column} > interval '1 hour'""",
        )
        assert late == 0, table


def test_nothing_of_the_schema_is_disabled(rows: psycopg.Connection) -> None:
    assert _count(rows, "SELECT FROM pg_trigger WHERE tgenabled <> 'O'") == 0
    assert _count(rows, "SELECT FROM pg_index WHERE NOT indisvalid") == 0
    assert _count(rows, "SELECT FROM pg_constraint WHERE NOT convalidated") == 0


def test_a_filled_database_is_refused_unless_more_is_added(
    server: EmbeddedServer, rows: psycopg.Connection
) -> None:
    url = _url(server)
    fill = ["-m", "tests.bench.many", "--instances", "50"]
    before = _count(rows, "SELECT FROM engine_instance")
    rows.rollback()

    refused = _run(fill, DATABASE_URL=url)
    assert (refused.returncode, _count(rows, "SELECT FROM engine_instance")) == (1, before)
    assert "--add" in refused.stderr
    rows.rollback()

    added = _run([*fill, "--add"], DATABASE_URL=url)
    assert added.returncode == 0, added.stderr
    assert _count(rows, "SELECT FROM engine_instance") >= before + 50
    assert rows.execute(
        "SELECT nextval('engine_instance_key_seq') - max(key) FROM engine_instance"
    ).fetchone() == (1,)


def test_every_page_and_list_is_timed_and_no_account_is_left(
    server: EmbeddedServer, rows: psycopg.Connection
) -> None:
    done = _run(["-m", "tests.bench.pages", "--runs", "1"], DATABASE_URL=_url(server))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(ASKED)} requests" in done.stdout
    assert "0 failed" in done.stdout
    assert _count(rows, "SELECT FROM auth_user") == 0


def test_the_same_seed_makes_the_same_rows() -> None:
    size = Size(instances=300, errors=60, seed=7)
    first, again, other = (
        [*Shop(one, NOW, KEYS).batches()] for one in (size, size, Size(instances=300, errors=60, seed=8))
    )
    assert first == again
    assert first != other


def _url(server: EmbeddedServer) -> str:
    return f"postgresql://{USER}@/{DATABASE}?host={socket_dir(server.home)}"


def _count(connection: psycopg.Connection, query: str) -> int:
    (found,) = connection.execute(f"SELECT count(*) FROM ({query}) AS row").fetchone() or (0,)
    return int(found)


def _run(arguments: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REPRISE_HOME")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=PROJECT,
        env=kept | {"DJANGO_SETTINGS_MODULE": "studio.settings", "REPRISE_APPS": "tests.bench", **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
