"""A database made before the migrations were squashed into `0001_start`: upgraded, or refused before anything changes.

`migrate` upgrades one that stands exactly at the last of the migrations before (see `Migration.apply` there). No
migration leads on from an older one, or from one whose migration was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.migrations import Migration
from django.db.migrations.recorder import MigrationRecorder

from engine.models import router

START = "0001_start"
MIGRATIONS = (
    "0001_initial",
    "0002_event_buffered",
    "0003_relatives_and_requests",
    "0004_steering",
    "0005_safe_times",
    "0006_attention_and_search",
    "0007_notices",
    "0008_ended_requests",
    "0009_notices_of_others",
    "0010_pause_reason",
)
COMMIT = "ad813e0"  # the last one that has them

HAS_TABLES = "SELECT to_regclass('engine_instance') IS NOT NULL"
# The sessions of worker processes: each holds a lock of the space in `engine.worker.database.sql`.
WORKERS = """
    SELECT count(*) FROM pg_locks
    WHERE locktype = 'advisory' AND classid = 1381126738 AND objsubid = 2 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
DROP = """
    DROP TABLE IF EXISTS engine_instance, engine_generation, engine_step, engine_attempt, engine_event, engine_log,
        engine_open_request, engine_ended_request, engine_waiter, engine_notice, engine_audit, engine_schedule,
        engine_worker, engine_searchvalue, engine_indexedpath, engine_failure, engine_failure_count,
        engine_workflow_pause, engine_workflow_count, engine_workflow_count_delta, engine_workflow_span,
        engine_bulk_job, engine_bulk_item, engine_code;
    DROP FUNCTION IF EXISTS engine_refuse, engine_keep_request, engine_note_instance, engine_note_attempt,
        engine_keep_pause_reason, engine_index_started, engine_index_ended, engine_index_deleted,
        engine_search_value, engine_json_at, engine_count_inserted, engine_count_changed, engine_generation_began,
        engine_duration_bucket, engine_add_to_spans;
    DELETE FROM django_migrations WHERE app = 'engine'
"""
DROP_COMMAND = 'python manage.py shell -c "from engine.models.earlier import drop; drop()"'


class EarlierDatabaseError(CommandError):
    """`migrate` cannot upgrade the database as it stands, and has changed nothing."""


class TooEarlyDatabaseError(EarlierDatabaseError):
    """No migration leads from the engine's tables to those of this version. Nothing was changed.

    Migrate the database at the commit that the message names and then with this version. To give up what is stored,
    run the command in the message.
    """

    def __init__(self, name: str, state: str, drop: str = DROP_COMMAND) -> None:
        self.name, self.state = name, state
        super().__init__(
            f"The database {name} was made by an earlier version of Reprise: {state}. To keep it, migrate it at commit "
            f"{COMMIT} and then with this version. To drop what the engine has stored in it, run: {drop}"
        )


class WorkersRunError(EarlierDatabaseError):
    """Workers of the earlier version still run, and would go on writing columns whose names change. Nothing was
    changed.

    Stop all clusters and web processes, and migrate again.
    """

    def __init__(self, name: str, count: int) -> None:
        workers = "1 worker of that version is" if count == 1 else f"{count} workers of that version are"
        super().__init__(
            f"The database {name} was made by an earlier version of Reprise, and {workers} still connected. Stop all "
            "clusters and web processes, and migrate again."
        )


def is_upgradable(connection: Any) -> bool:
    """Tell whether the engine's tables are those of the last migration before `0001_start`."""
    return _recorded(connection) >= {*MIGRATIONS} and bool(_value(connection, HAS_TABLES))


def refuse(using: str, plan: Iterable[tuple[Migration, bool]], **_: Any) -> None:
    """Raise EarlierDatabaseError if `migrate` cannot do what it plans for the engine, before it does anything."""
    connection = connections[using]
    concerns_engine = any(migration.app_label == "engine" for migration, _ in plan)
    if (
        not concerns_engine
        or not router.is_default(using)
        or connection.vendor != "postgresql"
        or not _value(connection, HAS_TABLES)
    ):
        return
    recorded, name = _recorded(connection), str(connection.settings_dict["NAME"])
    if START in recorded:
        return
    if not is_upgradable(connection):
        raise TooEarlyDatabaseError(name, _state(recorded))
    if workers := _value(connection, WORKERS):
        raise WorkersRunError(name, workers)


def drop(using: str = DEFAULT_DB_ALIAS) -> None:
    """Drop the engine's tables, of any version, with all that is stored in them."""
    with transaction.atomic(using), connections[using].cursor() as cursor:
        cursor.execute(DROP)


def _state(recorded: set[str]) -> str:
    missing = next(name for name in MIGRATIONS if name not in recorded)
    before = MIGRATIONS[: MIGRATIONS.index(missing)]
    if not before:
        return f"its migration engine.{missing} is not recorded"
    return f"its engine tables stand at {before[-1]}, not at {MIGRATIONS[-1]}"


def _recorded(connection: Any) -> set[str]:
    return {name for app, name in MigrationRecorder(connection).applied_migrations() if app == "engine"}


def _value(connection: Any, query: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()[0]
