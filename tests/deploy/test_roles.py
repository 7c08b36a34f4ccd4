"""The roles of docs/deploy/roles.sql: one migrates, one runs, one reads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from studio.embedded import EmbeddedServer, socket_dir
from tests.conftest import copy_database, home_directory
from tests.deploy.files import DEPLOY
from tests.live import PROJECT
from tests.process.clusters import Cluster

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

Connect = Callable[[str], psycopg.Connection[Any]]


@pytest.fixture(scope="module")
def server(migrated_home: Path) -> Iterator[EmbeddedServer]:
    """A server with a database `shop` whose tables `reprise_owner` has made."""
    with home_directory() as home:
        copy_database(migrated_home, home)
        server = EmbeddedServer(home)
        server.start()
        try:
            with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
                connection.execute("CREATE DATABASE shop")
            assert "Run this file again after migrate" in apply_roles(server)
            migrate(server)
            apply_roles(server)
            yield server
        finally:
            server.stop()


def apply_roles(server: EmbeddedServer) -> str:
    """Run the file as its head says; return what psql says."""
    assert server.place is not None
    done = subprocess.run(
        [str(server.place.programs / "psql"), "-X", server.dsn("shop"), f"--file={DEPLOY / 'roles.sql'}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def url(server: EmbeddedServer, role: str) -> str:
    return f"postgresql://{role}@/shop?host={socket_dir(server.home)}"


def migrate(server: EmbeddedServer) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity=0"],
        cwd=PROJECT,
        env={
            "PATH": os.environ["PATH"],
            "DATABASE_URL": url(server, "reprise_owner"),
            "SECRET_KEY": "0123456789" * 6,
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def connect(server: EmbeddedServer) -> Iterator[Connect]:
    """Open connections as one of the roles."""
    opened: list[psycopg.Connection[Any]] = []

    def open_one(role: str) -> psycopg.Connection[Any]:
        opened.append(psycopg.connect(url(server, role), autocommit=True))
        return opened[-1]

    yield open_one
    for connection in opened:
        connection.close()


def tables(connection: psycopg.Connection[Any]) -> list[str]:
    query = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1"
    return [name for (name,) in connection.execute(query).fetchall()]


def test_the_owner_owns_every_table(connect: Connect) -> None:
    query = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'"
    assert connect("reprise_owner").execute(query).fetchall() == [("reprise_owner",)]


def test_a_cluster_runs_workflows_as_the_role_that_runs(server: EmbeddedServer, tmp_path: Path) -> None:
    cluster = Cluster(url(server, "reprise_app"), tmp_path)
    try:
        cluster.start()
        cluster.begin("errand", "one")
        cluster.wait_for_status("one", "complete")
        assert cluster.query(
            "SELECT DISTINCT usename FROM pg_stat_activity WHERE application_name ~ '^reprise'"
        ) == [("reprise_app",)]
        cluster.stop()
    finally:
        cluster.end()
    assert "permission denied" not in cluster.log.read_text()


def test_the_studio_answers_and_writes_the_audit_trail_as_that_role(server: EmbeddedServer) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", VISIT],
        cwd=PROJECT,
        env={
            "PATH": os.environ["PATH"],
            "DATABASE_URL": url(server, "reprise_app"),
            "SECRET_KEY": "0123456789" * 6,
            "REPRISE_APPS": "tests.sample",
            "REPRISE_ROLE": "web",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["200", "200", "200", "302", "paused", "1"]), (
        done.stderr
    )


VISIT = """
from django.contrib.auth.models import User
from django.test import Client
from engine.models import Audit
from tests.sample.workflows import tick
User.objects.create_superuser("ada", password="correct-horse-battery")
browser = Client(headers={"host": "localhost"})
assert browser.login(username="ada", password="correct-horse-battery")
for page in ("/", "/instances/", "/audit/"):
    print(browser.get(page).status_code)
instance = tick.start()
print(browser.post(f"/workflows/tick/instances/{instance.id}/pause/").status_code)
print(instance.refresh().status)
print(Audit.objects.filter(verb="pause", instance_id=instance.id).count())
"""


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE engine_log",
        "ALTER TABLE engine_instance ADD COLUMN more text",
        "ALTER TABLE engine_audit DISABLE TRIGGER ALL",
        "TRUNCATE engine_log",
        "CREATE TABLE more (id int)",
        "CREATE FUNCTION more() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE OR REPLACE FUNCTION engine_refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "DELETE FROM engine_audit",
        "UPDATE engine_audit SET actor = 'nobody'",
        "DELETE FROM django_migrations",
        "SET ROLE reprise_owner",
        "COPY (SELECT 1) TO PROGRAM 'true'",
    ],
)
def test_the_role_that_runs_changes_rows_and_nothing_else(connect: Connect, statement: str) -> None:
    with pytest.raises(InsufficientPrivilege):
        connect("reprise_app").execute(statement)


def test_the_role_that_reads_sees_all_but_what_is_secret(connect: Connect) -> None:
    reader, refused = connect("reprise_read"), []
    for table in tables(reader):
        try:
            reader.execute(f"SELECT * FROM {table} LIMIT 1")
        except InsufficientPrivilege:
            refused.append(table)
    assert refused == ["auth_user", "django_q_ormq", "django_q_schedule", "django_q_task", "django_session"]
    reader.execute("SELECT id, username, last_login FROM auth_user")
    with pytest.raises(InsufficientPrivilege):
        reader.execute("SELECT password FROM auth_user")


def test_the_role_that_reads_writes_nothing(connect: Connect) -> None:
    reader = connect("reprise_read")
    for table in tables(reader):
        for statement in ("INSERT INTO {} DEFAULT VALUES", "DELETE FROM {}", "TRUNCATE {}"):
            with pytest.raises(InsufficientPrivilege):
                reader.execute(statement.format(table))
    with pytest.raises(InsufficientPrivilege):
        reader.execute("CREATE TABLE mine (id int)")


def test_tables_of_later_migrations_get_the_same_rights(connect: Connect) -> None:
    owner = connect("reprise_owner")
    owner.execute("CREATE TABLE later (id serial PRIMARY KEY, name text)")
    try:
        connect("reprise_app").execute("INSERT INTO later (name) VALUES ('one')")
        assert connect("reprise_read").execute("SELECT name FROM later").fetchall() == [("one",)]
        with pytest.raises(InsufficientPrivilege):
            connect("reprise_app").execute("DROP TABLE later")
    finally:
        owner.execute("DROP TABLE later")


def test_other_roles_do_not_connect(server: EmbeddedServer) -> None:
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute("CREATE ROLE stranger LOGIN")
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(url(server, "stranger"))
