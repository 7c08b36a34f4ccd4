"""Databases of earlier releases become those of this one, beside their work; and back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from studio.embedded import USER, EmbeddedServer, socket_dir
from tests.live import PROJECT

pytestmark = pytest.mark.second_tier

# A step whose worker died an hour ago, and whose instance was paused then, as releases before 0005 left it.
PAUSED = """
    INSERT INTO engine_instance (key, workflow, id, status, params, paused_at)
    VALUES (1, 'w', 'one', 'paused', '{}', now() - interval '1 hour');
    INSERT INTO engine_step (instance_id, generation, seq, kind, name, count, status, attempts, started_at)
    VALUES (1, 1, 1, 'do', 's', 1, 'running', 1, now());
    INSERT INTO engine_attempt (instance_id, generation, step_seq, number, status, started_at)
    VALUES (1, 1, 1, 1, 'running', now());
"""
LOST = """
    SELECT a.status, s.status, s.lost, s.wake_at = i.paused_at
    FROM engine_instance i JOIN engine_step s ON s.instance_id = i.key JOIN engine_attempt a ON a.instance_id = i.key
"""
# One index as those releases made it, and one whose concurrent build was interrupted.
INDEXES = """
    CREATE INDEX engine_instance_owes ON engine_instance (key) WHERE owes;
    CREATE INDEX engine_instance_children ON engine_instance (parent_key) WHERE parent_key IS NOT NULL;
    UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'engine_instance_children'::regclass;
"""
MADE_LATER = {
    "engine_audit_deleted",
    "engine_event_buffered",
    "engine_instance_children",
    "engine_instance_owes",
    "engine_instance_own_retention",
    "engine_instance_woken",
}
VALID = """
    SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indisvalid AND c.relname = ANY (%s)
"""
ROW = """
    INSERT INTO engine_audit (verb, actor, user_key, workflow, instance_id, before, after, outcome, reason, at)
    VALUES ('pause', 'ana', '', 'w', 'one', '', '', 'done', '', %s)
"""
UNCHECKED = """
    SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relname LIKE 'engine\\_%' AND c.relkind = 'r' AND a.atttypid = 'timestamptz'::regtype AND NOT EXISTS (
        SELECT FROM pg_constraint k
        WHERE k.conrelid = c.oid AND k.convalidated AND a.attnum = ANY (k.conkey)
          AND pg_get_constraintdef(k.oid) ~ (a.attname || ' >= ''1970.*' || a.attname || ' < ''9999')
    )
"""


class Upgraded:
    """A database with the tables of some release."""

    def __init__(self, server: EmbeddedServer, name: str, home: Path) -> None:
        self.dsn = server.dsn(name)
        address = f"postgresql://{USER}@/{name}?host={socket_dir(server.home)}"
        kept = {one: os.environ[one] for one in ("PATH", "HOME", "LANG") if one in os.environ}
        self._environment = {**kept, "DATABASE_URL": address, "REPRISE_HOME": str(home)}

    def migrate(self, *target: str) -> None:
        command = [sys.executable, "manage.py", "migrate", "engine", *target, "--verbosity=0"]
        subprocess.run(command, cwd=PROJECT, env=self._environment, check=True, timeout=120)

    def ask(self, query: str, *values: object) -> list[tuple[object, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(query, values or None)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture
def upgraded(postgresql: EmbeddedServer, tmp_path: Path) -> Iterator[Upgraded]:
    with psycopg.connect(postgresql.dsn("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE upgraded")
        try:
            yield Upgraded(postgresql, "upgraded", tmp_path)
        finally:
            connection.execute("DROP DATABASE upgraded WITH (FORCE)")


def test_a_database_of_an_earlier_release_gets_what_it_lacks_also_if_that_is_interrupted(
    upgraded: Upgraded,
) -> None:
    upgraded.migrate("0004")
    upgraded.ask(PAUSED)
    upgraded.ask(INDEXES)
    for _ in range(2):
        upgraded.migrate("0005")
        assert {name for (name,) in upgraded.ask(VALID, [*MADE_LATER])} == MADE_LATER
        assert upgraded.ask(LOST) == [("lost", "waiting", 1, True)]
        assert upgraded.ask(UNCHECKED) == []
        upgraded.ask("DELETE FROM django_migrations WHERE app = 'engine' AND name LIKE '0005%'")


def test_the_tables_go_and_come_back_and_refuse_what_this_release_refuses(upgraded: Upgraded) -> None:
    upgraded.migrate()
    upgraded.migrate("zero")
    assert upgraded.ask("SELECT relname FROM pg_class WHERE relname LIKE 'engine\\_%'") == []
    assert upgraded.ask("SELECT proname FROM pg_proc WHERE proname LIKE 'engine\\_%'") == []
    upgraded.migrate()
    assert upgraded.ask(UNCHECKED) == []
    upgraded.ask(ROW, "now")
    for statement in ("TRUNCATE engine_audit", "TRUNCATE engine_instance, engine_audit CASCADE"):
        with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
            upgraded.ask(statement)
    assert upgraded.ask("SELECT verb FROM engine_audit") == [("pause",)]
    with pytest.raises(psycopg.errors.CheckViolation, match="engine_audit_times"):
        upgraded.ask(ROW, "infinity")
