"""System checks: find settings that lose work, run it twice, or delay it.

`manage.py check` reads the settings; `manage.py check --database default` also asks the server.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import psycopg
from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as Caution
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections

from engine import configuration, name_conflicts
from engine.declare import secrets
from engine.status import schema
from engine.worker.cluster import options
from engine.worker.cluster.queue import is_supported

OLDEST_POSTGRESQL = 150_000

# The usual ports of PgBouncer and other poolers.
POOLER_PORTS = {"6432", "6543"}

# Settings that a durable PostgreSQL has on, what is lost without each, and the id of its check.
SERVER_SETTINGS = {
    "fsync": ("a crash of the machine may destroy the database", "engine.W011"),
    "full_page_writes": ("a crash of the machine may destroy pages of the database", "engine.W012"),
    "synchronous_commit": ("a crash loses the latest commits, including starts and steps", "engine.W013"),
}


@register("engine")
def check_cluster(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Check what workers need; and Q_CLUSTER, unless it describes a cluster of the project's own."""
    if not apps.is_installed("django_q"):
        message = '"django_q" is not in INSTALLED_APPS, so `manage.py workers` cannot run workflows.'
        return [Error(message, hint='Add: INSTALLED_APPS += ["django_q"]', id="engine.E001")]
    if not options.runs_tasks():
        return list(_system())
    said = {**options.OPTIONS, **(options.of_project() or {})}
    return [*_tables_of_tasks(said), *_times(said), *_workers(said), *_system(), *_bookkeeping(said)]


@register("engine")
def check_names(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Check that the project has no package that is named like one of ours."""
    return [
        Error(conflict.message, hint=conflict.advice, id="engine.E012")
        for conflict in name_conflicts.conflicts()
    ]


@register("engine")
def check_configuration(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Check the settings in REPRISE and in the environment."""
    hint = "docs/settings.md lists them all."
    return [Error(problem, hint=hint, id="engine.E011") for problem in configuration.problems()]


@register("engine")
def check_times(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Check that Django reads times with their offset."""
    if settings.USE_TZ:
        return []
    message = (
        "USE_TZ is False: the engine's times would be read without their offset, and could not be compared."
    )
    return [Error(message, hint="Add: USE_TZ = True", id="engine.E007")]


@register("engine")
def check_secret_keys(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Check the keys that encrypt stored secrets."""
    try:
        secrets.own_keys()
    except ImproperlyConfigured as problem:
        if str(problem) in configuration.problems():  # named by the check of all settings
            return []
        hint = "Generate one with: python -c 'import secrets; print(secrets.token_urlsafe(48))'"
        return [Error(str(problem), hint=hint, id="engine.E010")]
    return []


@register("engine")
def check_databases(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Check the engine's database in DATABASES, without connecting to it."""
    database = settings.DATABASES.get(DEFAULT_DB_ALIAS, {})
    if connections[DEFAULT_DB_ALIAS].vendor != "postgresql":
        message = "The engine's database is not PostgreSQL."
        return [Error(message, hint="The engine runs only on PostgreSQL 15 or newer.", id="engine.E005")]
    return [*_pooler(database), *_cluster_connections(database)]


@register("engine", Tags.database)
def check_server(
    app_configs: Any = None, databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Ask the database server whether its commits are durable."""
    connection = connections[DEFAULT_DB_ALIAS]
    if not databases or DEFAULT_DB_ALIAS not in databases or connection.vendor != "postgresql":
        return []
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)",
                [["server_version_num", *SERVER_SETTINGS]],
            )
            found = dict(cursor.fetchall())
        lacking = schema.missing() if _is_check() else []  # migrate must not fail because of it
        newer = schema.unknown()
    except (OperationalError, psycopg.Error) as error:
        said = str(error).strip().splitlines()[0]
        return [Error(f"The database does not answer: {said}", hint="Check DATABASES.", id="engine.E009")]
    return [*judge_server(found), *_tables(lacking, Error), *_newer(newer)]


@register("engine")
def check_tables(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Check that the tables exist, for `manage.py check` alone. Never wait for a database that does not answer."""
    is_asked_fully = any(one.startswith("--database") for one in sys.argv)
    if not _is_check() or is_asked_fully or connections[DEFAULT_DB_ALIAS].vendor != "postgresql":
        return []
    try:
        return list(_tables(schema.missing(), Caution))
    except psycopg.Error:
        return []


def _tables(lacking: Sequence[str], make: Callable[..., CheckMessage]) -> Iterator[CheckMessage]:
    if lacking:
        what = schema.sentence(lacking).removesuffix(f" {schema.ADVICE}")
        yield make(what, hint=schema.ADVICE, id="engine.E008" if make is Error else "engine.W015")


def _newer(names: Sequence[str]) -> Iterator[CheckMessage]:
    if names:
        what, advice = schema.sentence_about_unknown(names).rsplit(". ", 1)
        yield Error(f"{what}.", hint=advice, id="engine.E016")


def _is_check() -> bool:
    return sys.argv[1:2] == ["check"]


def _tables_of_tasks(said: Mapping[str, Any]) -> Iterator[CheckMessage]:
    if said.get("orm", DEFAULT_DB_ALIAS) != DEFAULT_DB_ALIAS:
        yield Error(
            f'Q_CLUSTER["orm"] is "{said["orm"]}", but the engine\'s tables are in "{DEFAULT_DB_ALIAS}".',
            hint=f'Set it to "{DEFAULT_DB_ALIAS}": one statement finds both tasks and instances.',
            id="engine.E003",
        )


def _times(said: Mapping[str, Any]) -> Iterator[CheckMessage]:
    timeout, retry = said.get("timeout"), said["retry"]
    if not timeout or timeout < 0:
        yield Caution(
            'Q_CLUSTER["timeout"] is not set: an ordinary task that hangs blocks its worker forever, and after '
            f"{retry} seconds another worker starts it again.",
            hint='Set "timeout" to the longest time that an ordinary task may take. It does not apply to shifts.',
            id="engine.W001",
        )
    elif retry <= timeout:
        yield Error(
            f'Q_CLUSTER["retry"] ({retry} s) is not longer than "timeout" ({timeout} s): long tasks run twice.',
            hint='Make "retry" much larger: it counts from the moment a task is fetched, not from its start.',
            id="engine.E004",
        )
    if not said.get("ack_failures") and not said.get("max_attempts"):
        yield Caution(
            f"An ordinary task that fails runs again every {retry} seconds, forever.",
            hint='Set Q_CLUSTER["ack_failures"] to True, or "max_attempts".',
            id="engine.W002",
        )


def _workers(said: Mapping[str, Any]) -> Iterator[CheckMessage]:
    if said.get("workers") == 1:
        yield Caution(
            'Q_CLUSTER["workers"] is 1: that worker runs workflows, and each burst of ordinary tasks starts a process '
            "of its own.",
            hint="Set it to 2 or more: one worker then always runs ordinary tasks.",
            id="engine.W003",
        )
    if not 0 < said["guard_cycle"] <= 1:
        yield Caution(
            f'Q_CLUSTER["guard_cycle"] is {said["guard_cycle"]}: a dead worker is not replaced for that long.',
            hint="Set it to 0.5.",
            id="engine.W004",
        )


def _system() -> Iterator[CheckMessage]:
    if not is_supported():
        yield Caution(
            "This system lacks sockets that preserve packet boundaries: a killed worker may stop its cluster for good.",
            hint="Run clusters on Linux, or monitor them from outside.",
            id="engine.W005",
        )


def _bookkeeping(said: Mapping[str, Any]) -> Iterator[CheckMessage]:
    if said["save_limit"] >= 0:
        yield Caution(
            f'Q_CLUSTER["save_limit"] is {said["save_limit"]}: each successful ordinary task reads and locks all '
            "stored results.",
            hint="Set it to -1. Failures are stored in any case, and a task can still ask to be stored with save=True.",
            id="engine.W006",
        )
    cache = settings.CACHES.get(said["cache"], {}).get("BACKEND", "")
    if cache.endswith(".DatabaseCache"):
        yield Caution(
            f'Q_CLUSTER["cache"] is "{said["cache"]}", a table: a cluster writes to it twice a second.',
            hint="Give the cluster a cache alias of its own with a LocMemCache.",
            id="engine.W007",
        )


def _pooler(database: Mapping[str, Any]) -> Iterator[CheckMessage]:
    if database.get("DISABLE_SERVER_SIDE_CURSORS") or str(database.get("PORT", "")) in POOLER_PORTS:
        yield Caution(
            "The database seems to be behind a connection pooler. In transaction mode, workers get no notifications "
            "and cannot hold their session locks.",
            hint="Connect clusters directly, or through a pooler in session mode.",
            id="engine.W008",
        )


def _cluster_connections(database: Mapping[str, Any]) -> Iterator[CheckMessage]:
    command = next(iter(sys.argv[1:2]), "")
    if command == "qcluster" and not options.runs_tasks():
        return  # a cluster of the project's own
    if command == "qcluster" and database.get("CONN_MAX_AGE", 0) == 0:
        yield Caution(
            'DATABASES["default"]["CONN_MAX_AGE"] is 0: a cluster opens a connection for every task.',
            hint='Set it to 600 and "CONN_HEALTH_CHECKS" to True where qcluster runs.',
            id="engine.W009",
        )
    if command in ("qcluster", "workers") and database.get("OPTIONS", {}).get("pool"):
        yield Caution(
            "The cluster's database uses a connection pool, and each process of the cluster opens its own.",
            hint=f'Remove "pool" from the OPTIONS where `{command}` runs, and set "CONN_MAX_AGE" instead.',
            id="engine.W010",
        )


def judge_server(found: Mapping[str, str]) -> Iterator[CheckMessage]:
    if int(found["server_version_num"]) < OLDEST_POSTGRESQL:
        major = int(found["server_version_num"]) // 10_000
        message = f"The database is PostgreSQL {major}."
        yield Error(message, hint="The engine needs 15 or newer.", id="engine.E006")
    for name, (loss, key) in SERVER_SETTINGS.items():
        if found[name] == "off":
            yield Caution(
                f'PostgreSQL runs with "{name}" off: {loss}.',
                hint=f"Set {name} = on in postgresql.conf.",
                id=key,
            )
