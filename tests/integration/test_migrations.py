"""A new database, one that an earlier version made, and what `migrate` refuses: all of it happens, or nothing."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from engine.models.earlier import COMMIT, DROP_COMMAND, MIGRATIONS
from studio.embedded import USER, EmbeddedServer, socket_dir
from tests.live import PROJECT

pytestmark = pytest.mark.second_tier

# The engine's tables as the migrations up to 0010_pause_reason made them, by pg_dump, and rows of every status.
AT_0010 = (Path(__file__).parent / "database_at_0010.sql").read_text()
RENAMED = {
    "engine_instance": {"owes": "notify_pending", "isolated": "quarantined"},
    "engine_attempt": {"alone": "quarantined"},
    "engine_worker": {"seat": "worker_id"},
}
WORKER_LOCK = "SELECT pg_advisory_lock(1381126738, 7)"

TABLES = (
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1"
)
APPLIED = "SELECT app, name FROM django_migrations ORDER BY id"
# Everything about the engine's tables but the order of their columns.
SCHEMA = """
    SELECT 'column', table_name, column_name, format('%s %s %s %s', data_type, character_maximum_length, column_default,
        identity_generation)
    FROM information_schema.columns WHERE table_name LIKE 'engine\\_%'
    UNION ALL SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE conrelid::regclass::text LIKE 'engine\\_%'
    UNION ALL SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE tablename LIKE 'engine\\_%'
    UNION ALL SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(oid)
    FROM pg_trigger WHERE NOT tgisinternal AND tgrelid::regclass::text LIKE 'engine\\_%'
    UNION ALL SELECT 'function', '', proname, pg_get_functiondef(oid) FROM pg_proc WHERE proname LIKE 'engine\\_%'
    UNION ALL SELECT 'storage', relname, '', reloptions::text
    FROM pg_class WHERE relname LIKE 'engine\\_%' AND reloptions IS NOT NULL
    ORDER BY 1, 2, 3
"""
UNCHECKED = """
    SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relname LIKE 'engine\\_%' AND c.relkind = 'r' AND a.atttypid = 'timestamptz'::regtype AND NOT EXISTS (
        SELECT FROM pg_constraint k
        WHERE k.conrelid = c.oid AND k.convalidated AND a.attnum = ANY (k.conkey)
          AND pg_get_constraintdef(k.oid) ~ (a.attname || ' >= ''1970.*' || a.attname || ' < ''9999')
    )
"""
AUDITED = """
    INSERT INTO engine_audit (verb, actor, user_key, workflow, instance_id, before, after, outcome, reason, at)
    VALUES ('pause', 'ana', '', 'w', 'one', '', '', 'done', '', %s)
"""
NEW_TABLES = (
    "engine_bulk_item",
    "engine_bulk_job",
    "engine_code",
    "engine_failure",
    "engine_failure_count",
    "engine_indexedpath",
    "engine_searchvalue",
    "engine_workflow_count",
    "engine_workflow_count_delta",
    "engine_workflow_pause",
    "engine_workflow_span",
)

Rows = dict[str, list[dict[str, object]]]


class Database:
    """A database that `migrate` is run on, as people run it."""

    def __init__(self, server: EmbeddedServer, name: str, home: Path) -> None:
        self.dsn = server.dsn(name)
        address = f"postgresql://{USER}@/{name}?host={socket_dir(server.home)}"
        kept = {one: os.environ[one] for one in ("PATH", "HOME", "LANG") if one in os.environ}
        self._environment = {**kept, "DATABASE_URL": address, "REPRISE_HOME": str(home)}

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def migrate(self, *target: str) -> None:
        done = self.manage("migrate", *target, "--verbosity=0")
        assert done.returncode == 0, done.stderr

    def refusal(self) -> str:
        """Return the line that `migrate` ends with."""
        done = self.manage("migrate")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        _error, _, line = done.stderr.partition(": ")
        return line.removesuffix("\n")

    def ask(self, query: str, *values: object) -> list[tuple[object, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(query, values or None)
            return cursor.fetchall() if cursor.description else []

    def state(self) -> list[list[tuple[object, ...]]]:
        return [self.ask(TABLES), self.ask(SCHEMA), self.ask(APPLIED)]

    def schema(self) -> list[tuple[str, ...]]:
        """Return what is known of the engine's tables, without the casts of expressions: pg_dump writes other ones."""
        found = [tuple(map(str, row)) for row in self.ask(SCHEMA)]
        return [(*names, re.sub(r"::[a-z ]+(\[\])?|[()]", "", definition)) for *names, definition in found]

    def rows(self) -> Rows:
        """Return the rows of the engine's tables, under the names that their columns have now."""
        tables = [str(name) for (name,) in self.ask(TABLES) if str(name).startswith("engine_")]
        return {table: [_renamed(table, row) for (row,) in self.ask(_rows_of(table))] for table in tables}


def _rows_of(table: str) -> str:
    return f"SELECT to_json(t)::text FROM {table} t ORDER BY to_json(t)::jsonb::text"


def _renamed(table: str, row: object) -> dict[str, object]:
    names = RENAMED.get(table, {})
    return {names.get(name, name): value for name, value in json.loads(str(row)).items()}


def _sorted(rows: Rows) -> Rows:
    return {
        table: sorted(found, key=lambda row: json.dumps(row, sort_keys=True)) for table, found in rows.items()
    }


def _without_new_columns(rows: Rows, before: Rows) -> Rows:
    """Leave out of the rows what these tables did not have before: nothing is in it yet."""
    known = {table: {*found[0]} for table, found in before.items() if found}
    new = [
        (name, value)
        for table, found in rows.items()
        for row in found
        for name, value in row.items()
        if name not in known.get(table, row)
    ]
    assert {value for _, value in new} <= {None, ""}
    return {
        table: [{name: row[name] for name in row if name in known.get(table, row)} for row in found]
        for table, found in rows.items()
    }


@pytest.fixture
def database(postgresql: EmbeddedServer, tmp_path: Path) -> Iterator[Database]:
    with psycopg.connect(postgresql.dsn("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE migrated")
        try:
            yield Database(postgresql, "migrated", tmp_path)
        finally:
            connection.execute("DROP DATABASE migrated WITH (FORCE)")


@pytest.fixture
def earlier(database: Database) -> Database:
    database.ask(AT_0010)
    return database


def test_the_tables_go_and_come_back_and_refuse_what_nothing_may_write(database: Database) -> None:
    database.migrate("engine")
    database.migrate("engine", "zero")
    assert database.ask("SELECT relname FROM pg_class WHERE relname LIKE 'engine\\_%'") == []
    assert database.ask("SELECT proname FROM pg_proc WHERE proname LIKE 'engine\\_%'") == []
    database.migrate("engine")
    assert database.ask(UNCHECKED) == []
    database.ask(AUDITED, "now")
    for statement in ("TRUNCATE engine_audit", "TRUNCATE engine_instance, engine_audit CASCADE"):
        with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
            database.ask(statement)
    assert database.ask("SELECT verb FROM engine_audit") == [("pause",)]
    with pytest.raises(psycopg.errors.CheckViolation, match="engine_audit_times"):
        database.ask(AUDITED, "infinity")


def test_the_tables_and_the_record_of_them_are_committed_together(database: Database) -> None:
    """A start that is killed between the two would find tables that it cannot account for."""
    database.migrate("contenttypes")
    database.ask("ALTER TABLE django_migrations ADD CONSTRAINT no_record CHECK (app <> 'engine')")
    before = database.state()
    assert "no_record" in database.manage("migrate", "engine").stderr
    assert database.state() == before


def test_a_database_at_0010_is_upgraded_to_what_a_new_one_has_and_keeps_its_rows(earlier: Database) -> None:
    before = _sorted(earlier.rows())
    assert len(before["engine_instance"]) == 13
    earlier.migrate()
    new = {table: list[dict[str, object]]() for table in NEW_TABLES}
    assert _sorted(_without_new_columns(earlier.rows(), before)) == {**before, **new}
    recorded = earlier.ask("SELECT name FROM django_migrations WHERE app = 'engine' ORDER BY 1")
    names = (
        "start",
        "search",
        "restart",
        "failures",
        "workers",
        "exhausted",
        "holds",
        "error_notes",
        "counters",
        "bulk",
        "waiting",
        "cheaper_counts",
        "start_later",
        "code",
        "charts",
        "start_jobs",
    )
    assert [name.partition("_")[2] for (name,) in recorded] == [*names]
    upgraded = earlier.schema()
    earlier.migrate("engine", "zero")
    earlier.migrate("engine")
    assert earlier.schema() == upgraded


STARTED = """
    INSERT INTO engine_instance (workflow, id, status, params, wake_at)
    VALUES ('w', %s, 'queued', '{"customer": "c"}', clock_timestamp())
"""
INDEXED = (
    "SELECT i.id, v.text FROM engine_searchvalue v JOIN engine_instance i ON i.key = v.instance_id ORDER BY 1"
)


def test_the_index_of_search_paths_comes_to_a_database_with_instances_and_goes_again(
    database: Database,
) -> None:
    database.migrate("engine", "0001_start")
    before = database.schema()
    database.ask(STARTED, "before")
    database.migrate("engine")
    database.ask("INSERT INTO engine_indexedpath (workflow, path) VALUES ('w', 'params.customer')")
    database.ask(STARTED, "after")
    assert database.ask(INDEXED) == [("after", "c")]
    database.migrate("engine", "0001_start")
    assert database.schema() == before
    database.ask(STARTED, "later")
    assert len(database.ask("SELECT id FROM engine_instance")) == 3


COUNTED = "SELECT what, amount FROM engine_workflow_count_delta ORDER BY key"


def test_counters_come_to_a_database_with_instances_count_from_then_on_and_go_again(
    database: Database,
) -> None:
    database.migrate("engine", "0008_exhausted")
    before = database.schema()
    database.ask(STARTED, "before")
    database.migrate("engine")
    assert database.ask(COUNTED) == []
    database.ask(STARTED, "after")
    end = "UPDATE engine_instance SET status = 'terminated', wake_at = NULL, finished_at = clock_timestamp()"
    database.ask(end)
    assert database.ask(COUNTED) == [("started", 1), ("terminated", 1), ("terminated", 1)]
    database.migrate("engine", "0008_exhausted")
    assert database.schema() == before
    database.ask(STARTED, "later")
    assert len(database.ask("SELECT id FROM engine_instance")) == 3


SPANS = """
    SELECT minutes, started, complete, terminated, retries, cardinality(latency) FROM engine_workflow_span
    ORDER BY minutes
"""
# As a worker does every few seconds.
ADD_UP = """
    WITH taken AS (DELETE FROM engine_workflow_count_delta RETURNING *)
    INSERT INTO engine_workflow_count (unit, at, workflow, what, bucket, amount)
    SELECT unit, date_trunc(unit, at, 'UTC'), workflow, what, bucket, sum(amount)
    FROM taken CROSS JOIN (VALUES ('minute'), ('hour'), ('day')) AS span (unit) GROUP BY 1, 2, 3, 4, 5
    ON CONFLICT (unit, at, workflow, what, bucket) DO UPDATE SET
        amount = engine_workflow_count.amount + excluded.amount
"""


def test_charts_show_what_was_counted_before_they_came_and_what_a_worker_of_before_adds_up(
    database: Database,
) -> None:
    database.migrate("engine", "0016_code")
    before = database.schema()
    for name in ("one", "two"):
        database.ask(STARTED, name)
    end = (
        "UPDATE engine_instance SET status = 'terminated', wake_at = NULL, finished_at = clock_timestamp()"
        " WHERE id = %s"
    )
    database.ask(end, "one")
    database.ask(ADD_UP)
    database.migrate("engine")
    assert {row[2:] for row in database.ask(SPANS)} >= {(0, 1, 0, 56)}
    database.ask(STARTED, "three")
    database.ask(end, "two")
    database.ask(ADD_UP)
    days = [row[1:] for row in database.ask(SPANS) if row[0] == 1440]
    assert [sum(column) for column in zip(*days, strict=True)][:4] == [3, 0, 2, 0]
    database.migrate("engine", "0016_code")
    assert database.schema() == before


def test_an_upgraded_database_is_read_and_written_as_a_new_one(earlier: Database) -> None:
    earlier.migrate()
    for name in ("queued", "paused", "complete"):
        shown = earlier.manage("workflow", "show", f"w/{name}", "--json")
        assert json.loads(shown.stdout)["instance"]["id"] == name, shown.stderr
    assert earlier.manage("workflow", "terminate", "w/queued", "--reason", "old").returncode == 0
    found = earlier.ask("SELECT status FROM engine_instance WHERE id = 'queued'")
    assert found == [("terminated",)]


def test_an_upgrade_that_fails_changes_nothing_and_can_be_run_again(earlier: Database) -> None:
    earlier.ask(
        "CREATE INDEX engine_worker_worker_id_key ON engine_worker (name)"
    )  # the last name that is given
    before = earlier.state()
    assert "engine_worker_worker_id_key" in earlier.manage("migrate", "engine").stderr
    assert earlier.state() == before
    earlier.ask("DROP INDEX engine_worker_worker_id_key")
    earlier.migrate("engine")
    assert earlier.ask("SELECT worker_id FROM engine_worker ORDER BY 1") == [(-5,), (7,)]


def test_an_upgrade_waits_until_the_workers_of_the_earlier_version_are_gone(earlier: Database) -> None:
    before = earlier.state()
    with psycopg.connect(earlier.dsn, autocommit=True) as worker:
        worker.execute(WORKER_LOCK)
        assert earlier.refusal() == (
            "The database migrated was made by an earlier version of Reprise, and 1 worker of that version is still "
            "connected. Stop all clusters and web processes, and migrate again."
        )
        assert earlier.state() == before
    earlier.migrate()


@pytest.mark.parametrize(
    ("applied", "state"),
    [
        (9, "its engine tables stand at 0009_notices_of_others, not at 0010_pause_reason"),
        (1, "its engine tables stand at 0001_initial, not at 0010_pause_reason"),
        (0, "its migration engine.0001_initial is not recorded"),
    ],
)
def test_an_older_or_half_migrated_database_is_refused_in_one_line(
    earlier: Database, applied: int, state: str
) -> None:
    earlier.ask("DELETE FROM django_migrations WHERE name = ANY (%s)", [*MIGRATIONS[applied:]])
    before = earlier.state()
    assert earlier.refusal() == (
        f"The database migrated was made by an earlier version of Reprise: {state}. To keep it, migrate it at commit "
        f"{COMMIT} and then with this version. To drop what the engine has stored in it, run: {DROP_COMMAND}"
    )
    assert earlier.state() == before
    earlier.migrate("contenttypes")  # no concern of the engine's


def test_what_the_refusal_says_drops_the_tables_and_then_migrate_makes_new_ones(earlier: Database) -> None:
    earlier.ask("DELETE FROM django_migrations WHERE name = '0010_pause_reason'")
    _, _, *arguments = shlex.split(DROP_COMMAND)
    assert earlier.manage(*arguments).returncode == 0
    assert earlier.ask("SELECT relname FROM pg_class WHERE relname LIKE 'engine\\_%'") == []
    earlier.migrate()
    assert earlier.ask("SELECT count(*) FROM engine_instance") == [(0,)]
