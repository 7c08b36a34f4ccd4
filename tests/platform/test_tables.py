"""A database that was not migrated: every program says what to run, and the supervisor runs it."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import psycopg
import pytest

from engine.models.earlier import COMMIT
from engine.version import VERSION
from studio.embedded import EmbeddedServer, socket_dir
from studio.supervisor.address import answers
from tests.live import PROJECT, LiveStack, free_port

ENGINE = (
    "0001_start",
    "0002_search",
    "0005_restart",
    "0006_failures",
    "0007_workers",
    "0008_exhausted",
    "0009_holds",
    "0010_error_notes",
    "0011_counters",
    "0012_bulk",
    "0013_waiting",
    "0014_cheaper_counts",
    "0015_start_later",
    "0016_code",
    "0017_charts",
    "0018_start_jobs",
)
START, LATEST = ENGINE[0], ENGINE[-1]
ALL = ", ".join(f"engine.{one}" for one in ENGINE)
NAMED = 3  # in a message
FIRST = ", ".join(f"engine.{one}" for one in ENGINE[:NAMED])
LACKING = f"The database lacks the migrations {FIRST} and {len(ENGINE) - NAMED} more."
RUN = "Run `python manage.py migrate`."
OTHERS = ("django_q", "auth", "sessions", "studio")

AT_0010 = (PROJECT / "tests" / "integration" / "database_at_0010.sql").read_text()
TABLES_AND_MIGRATIONS = """
    SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
    UNION ALL SELECT name FROM django_migrations ORDER BY 1
"""

pytestmark = pytest.mark.second_tier


@contextmanager
def outdated(
    server: EmbeddedServer, name: str, home: Path, apps: Sequence[str] = OTHERS
) -> Iterator[dict[str, str]]:
    """The environment of a database that lacks the engine's migrations, or more of them."""
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        url = f"postgresql://reprise@/{name}?host={quote(str(socket_dir(server.home)), safe='')}"
        found = {"PATH": os.environ["PATH"], "DATABASE_URL": url, "PYTHONPATH": str(PROJECT)}
        found["REPRISE_HOME"] = str(home)
        for app in apps:
            assert manage(found, "migrate", app, "-v", "0").returncode == 0
        yield found
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
def variables(
    postgresql: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    with outdated(postgresql, "outdated", tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture(scope="module")
def ancient(postgresql: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with outdated(postgresql, "ancient", tmp_path_factory.mktemp("home"), ()) as found:
        yield found


def manage(variables: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT,
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_check_warns_and_asked_about_the_database_it_fails(variables: dict[str, str]) -> None:
    done = manage(variables, "check")
    assert done.returncode == 0
    assert f"(engine.W015) {LACKING}\n\tHINT: {RUN}\n" in done.stderr
    done = manage(variables, "check", "--database", "default")
    assert done.returncode == 1
    assert f"(engine.E008) {LACKING}\n\tHINT: {RUN}\n" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["verify"], 2),
        (["workflow", "list"], 1),
        (["workflow", "start", "tick"], 1),
    ],
)
def test_commands_say_what_to_run_and_nothing_else(
    ancient: dict[str, str], arguments: list[str], code: int
) -> None:
    """Where they cannot do what they are for: what needs none of the missing tables works."""
    done = manage(ancient | {"REPRISE_APPS": "tests.sample"}, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    said = done.stderr.removeprefix("CommandError: ")
    assert said.startswith(f"The database lacks the migrations engine.{START}, ")
    assert said.endswith(f" more. {RUN}\n")


def test_a_database_that_is_away_is_no_failure_of_check(variables: dict[str, str]) -> None:
    away = variables | {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nowhere"}
    done = manage(away, "check")
    assert (done.returncode, done.stderr) == (0, "")
    done = manage(away, "check", "--database", "default")
    assert done.returncode == 1
    assert "(engine.E009) The database does not answer: " in done.stderr
    assert "Traceback" not in done.stderr


def test_migrate_is_not_kept_from_its_work(variables: dict[str, str]) -> None:
    done = manage(variables, "migrate", "--plan")
    assert done.returncode == 0
    assert f"engine.{START}" in done.stdout


@pytest.mark.process
def test_the_web_process_says_so_and_says_when_it_starts_and_stops(
    variables: dict[str, str], tmp_path: Path
) -> None:
    started, lacking, stopped = logged_by_web(variables, tmp_path / "log", until="lacks")
    facts = f"Reprise {VERSION}, database outdated on {socket_dir_of(variables)}, 0 workflows"
    assert started == f"INFO reprise.web [-] Web started: {facts}"
    assert lacking == f"ERROR reprise.web [-] {LACKING} {RUN} Pages fail until that is done."
    assert stopped == f"INFO reprise.web [-] Web stopped: {facts}"


@pytest.mark.process
def test_the_web_process_serves_a_database_of_a_newer_version_and_says_how_to_go_back(
    postgresql: EmbeddedServer, tmp_path: Path
) -> None:
    """Old and new web processes run side by side during an upgrade, as clusters do."""
    with outdated(postgresql, "newer", tmp_path, ["engine", *OTHERS]) as found:
        with psycopg.connect(postgresql.dsn("newer")) as connection:
            connection.execute(
                "INSERT INTO django_migrations (app, name, applied) VALUES ('engine', '0003_next', now())"
            )
        _, newer, _ = logged_by_web(found, tmp_path / "log", until="newer version")
    assert newer == (
        f"ERROR reprise.web [-] The database was migrated by a newer version of Reprise: {VERSION} does not know the "
        "migration engine.0003_next. Install that version again, or use it to undo its migrations: `python manage.py "
        f"migrate engine {LATEST}`. Pages may fail until that is done."
    )


def logged_by_web(variables: dict[str, str], log: Path, *, until: str) -> list[str]:
    """Run a web process until it answers and has logged some text; return its lines, without their times."""
    port = free_port()
    with log.open("wb") as file:
        web = subprocess.Popen(
            [sys.executable, "-m", "daphne", "-v", "0", "-p", str(port), "studio.asgi:application"],
            cwd=PROJECT,
            env=variables,
            stderr=file,
        )
    try:
        deadline = time.monotonic() + 60
        while not (answers("127.0.0.1", port) and until in log.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        web.terminate()
        web.wait(60)
    finally:
        web.kill()
        web.wait()
    return [line.split(" ", 2)[2] for line in log.read_text().splitlines()]


def socket_dir_of(variables: dict[str, str]) -> str:
    return parse_qs(urlsplit(variables["DATABASE_URL"]).query)["host"][0]


@pytest.mark.process
def test_a_start_and_a_stop_are_four_lines(make_stack: Callable[..., LiveStack]) -> None:
    stack = make_stack().start()
    stack.stop()
    said = [line for line in stack.output().splitlines() if "Web and workers run as root" not in line]
    assert said == [
        "reprise │ Starting the embedded PostgreSQL",
        f"reprise │ Reprise is ready: {stack.url}/   (Ctrl-C stops it)",
        "reprise │ Stopping; a second Ctrl-C hurries",
        "reprise │ Stopped",
    ]


@pytest.mark.long
@pytest.mark.process
def test_the_supervisor_migrates_and_says_what(
    make_stack: Callable[..., LiveStack], postgresql: EmbeddedServer, tmp_path: Path
) -> None:
    with outdated(postgresql, "to_migrate", tmp_path) as found:
        stack = make_stack(is_new=True, DATABASE_URL=found["DATABASE_URL"]).start()
        assert f"Migrated the database: {ALL}\n" in stack.output()
        stack.stop()
        stack.log.unlink()
        stack.start()
        assert "Migrated" not in stack.output()
        stack.stop()


@pytest.mark.process
def test_the_supervisor_refuses_a_half_migrated_database_and_leaves_it_as_it_is(
    make_stack: Callable[..., LiveStack],
) -> None:
    """It says how to delete the files, since nothing can connect once it has stopped. Then it starts again."""
    stack = make_stack(is_new=True)
    server = EmbeddedServer(stack.home)
    server.start()
    with psycopg.connect(stack.dsn(), autocommit=True) as connection:
        connection.execute(AT_0010)
        connection.execute("DELETE FROM django_migrations WHERE name = '0010_pause_reason'")
        before = connection.execute(TABLES_AND_MIGRATIONS).fetchall()
    server.stop()

    stack.launch()
    assert stack.process is not None
    assert stack.process.wait(120) == 1
    [refusal] = [line for line in stack.output().splitlines() if "0009_notices_of_others" in line]
    assert f"migrate it at commit {COMMIT}" in refusal
    _, _, drop = refusal.partition("run: ")

    server.start()
    with psycopg.connect(stack.dsn()) as connection:
        assert connection.execute(TABLES_AND_MIGRATIONS).fetchall() == before
    server.stop()

    subprocess.run(shlex.split(drop), check=True)
    stack.start()
    stack.stop()
