"""System checks: settings under which work would be lost, run twice, or wait.

`manage.py check` reads the settings; `manage.py check --database default` asks the server too.
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
from django.utils.module_loading import import_string

from engine.declare import secrets
from engine.declare.registry import workflows
from engine.status import schema
from engine.worker.cluster.queue import is_supported

BROKER = "engine.worker.broker.Broker"
BROKER_CLASS = "engine.worker.cluster.broker.Broker"  # which that is
OLDEST_POSTGRESQL = 150_000

# What django-q takes when nothing is said.
DEFAULTS = {"retry": 60, "save_limit": 250, "guard_cycle": 0.5, "cache": "default"}

# Where PgBouncer and its like listen by custom.
POOLER_PORTS = {"6432", "6543"}

# What a PostgreSQL that promises to keep data has on, what is lost without it, and the check that says so.
SERVER_SETTINGS = {
    "fsync": ("a crash of the machine may destroy the database", "engine.W011"),
    "full_page_writes": ("a crash of the machine may destroy pages of the database", "engine.W012"),
    "synchronous_commit": ("a crash loses what was just confirmed, starts and steps included", "engine.W013"),
}


@register("engine")
def check_cluster(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Check Q_CLUSTER, which says how workers run."""
    cluster: Mapping[str, Any] | None = getattr(settings, "Q_CLUSTER", None)
    if cluster is None or not apps.is_installed("django_q"):
        message = "There is no cluster: nothing here runs workflows."
        hint = f'Add "django_q" to INSTALLED_APPS, and Q_CLUSTER with "broker_class": "{BROKER}".'
        return [Error(message, hint=hint, id="engine.E001")]
    said = DEFAULTS | dict(cluster)
    return [*_broker(said), *_times(said), *_workers(said), *_bookkeeping(said)]


@register("engine")
def check_schedules(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Check what schedules and retention need besides a cluster."""
    cluster: Mapping[str, Any] = getattr(settings, "Q_CLUSTER", None) or {}
    has_schedules = any(workflow.schedules for workflow in workflows.values())
    return [*_scheduler(cluster, has_schedules), *_moments(has_schedules)]


@register("engine")
def check_secret_keys(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Check the keys that stored secrets are encrypted with."""
    try:
        secrets.own_keys()
    except ImproperlyConfigured as problem:
        hint = "Make one with: python -c 'import secrets; print(secrets.token_urlsafe(48))'"
        return [Error(str(problem), hint=hint, id="engine.E010")]
    return []


@register("engine")
def check_databases(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Check what DATABASES says of the engine's database, without asking it."""
    database = settings.DATABASES.get(DEFAULT_DB_ALIAS, {})
    if connections[DEFAULT_DB_ALIAS].vendor != "postgresql":
        message = "The engine's database is not PostgreSQL."
        return [
            Error(
                message, hint="It rests on PostgreSQL 15 or newer and runs on nothing else.", id="engine.E005"
            )
        ]
    return [*_pooler(database), *_cluster_connections(database)]


@register("engine", Tags.database)
def check_server(
    app_configs: Any = None, databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Ask the database server whether what it commits is kept."""
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
        lacking = schema.missing() if _is_check() else []  # migrate must not be kept from its work
    except (OperationalError, psycopg.Error) as error:
        said = str(error).strip().splitlines()[0]
        return [Error(f"The database does not answer: {said}", hint="Check DATABASES.", id="engine.E009")]
    return [*judge_server(found), *_tables(lacking, Error)]


@register("engine")
def check_tables(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Look, for `manage.py check` alone, whether the tables are there. A database that is away is not waited for."""
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


def _is_check() -> bool:
    return sys.argv[1:2] == ["check"]


def _broker(said: Mapping[str, Any]) -> Iterator[CheckMessage]:
    if not _is_ours(said.get("broker_class")):
        yield Error(
            'Q_CLUSTER["broker_class"] is not the engine\'s broker: no worker hears that an instance is due.',
            hint=f'Set it to "{BROKER}", or to a subclass of it.',
            id="engine.E002",
        )
    if said.get("orm", DEFAULT_DB_ALIAS) != DEFAULT_DB_ALIAS:
        yield Error(
            f'Q_CLUSTER["orm"] is "{said["orm"]}", but the engine\'s tables are in "{DEFAULT_DB_ALIAS}".',
            hint=f'Set it to "{DEFAULT_DB_ALIAS}": tasks and instances are looked for in one statement.',
            id="engine.E003",
        )


def _times(said: Mapping[str, Any]) -> Iterator[CheckMessage]:
    timeout, retry = said.get("timeout"), said["retry"]
    if not timeout or timeout < 0:
        yield Caution(
            'Q_CLUSTER["timeout"] is not set: an ordinary task that hangs keeps its worker for ever, and after '
            f"{retry} seconds another worker begins it a second time.",
            hint='Set "timeout" to the longest that an ordinary task may take. Shifts are exempt.',
            id="engine.W001",
        )
    elif retry <= timeout:
        yield Error(
            f'Q_CLUSTER["retry"] ({retry} s) is not longer than "timeout" ({timeout} s): long tasks run twice.',
            hint='Make "retry" the larger by far: it counts from when a task is fetched, not from its start.',
            id="engine.E004",
        )
    if not said.get("ack_failures") and not said.get("max_attempts"):
        yield Caution(
            f"An ordinary task that fails runs again every {retry} seconds, for ever.",
            hint='Set Q_CLUSTER["ack_failures"] to True, or "max_attempts".',
            id="engine.W002",
        )


def _workers(said: Mapping[str, Any]) -> Iterator[CheckMessage]:
    if said.get("workers") == 1:
        yield Caution(
            'Q_CLUSTER["workers"] is 1: that worker runs workflows, and each burst of ordinary tasks starts a process '
            "beside it.",
            hint="Set it to 2 or more: one of them then serves ordinary tasks all the time.",
            id="engine.W003",
        )
    if not 0 < said["guard_cycle"] <= 1:
        yield Caution(
            f'Q_CLUSTER["guard_cycle"] is {said["guard_cycle"]}: so long a dead worker is not replaced.',
            hint="Set it to 0.5.",
            id="engine.W004",
        )
    if not is_supported():
        yield Caution(
            "This system has no sockets that keep packets whole: a killed worker may stop its cluster for good.",
            hint="Run clusters on Linux, or watch over them from outside.",
            id="engine.W005",
        )


def _bookkeeping(said: Mapping[str, Any]) -> Iterator[CheckMessage]:
    if said["save_limit"] >= 0:
        yield Caution(
            f'Q_CLUSTER["save_limit"] is {said["save_limit"]}: each ordinary task that succeeds reads and locks all '
            "results that are kept.",
            hint="Set it to -1. Failures are kept in any case, and a task may still ask for it with save=True.",
            id="engine.W006",
        )
    cache = settings.CACHES.get(said["cache"], {}).get("BACKEND", "")
    if cache.endswith(".DatabaseCache"):
        yield Caution(
            f'Q_CLUSTER["cache"] is "{said["cache"]}", a table: a cluster writes to it twice a second.',
            hint="Give it an alias of its own with a LocMemCache.",
            id="engine.W007",
        )


def _scheduler(said: Mapping[str, Any], has_schedules: bool) -> Iterator[CheckMessage]:
    if not said.get("scheduler", True):
        nobody = "no schedule starts anything, and " if has_schedules else ""
        yield Caution(
            f'Q_CLUSTER["scheduler"] is False: {nobody}finished instances are never deleted by their retention.',
            hint="Take it out, at least in the settings of one cluster.",
            id="engine.W014",
        )


def _moments(has_schedules: bool) -> Iterator[CheckMessage]:
    if has_schedules and not settings.USE_TZ:
        yield Error(
            "USE_TZ is False, and workflows have schedules: when they are due cannot be told.",
            hint="Set USE_TZ to True.",
            id="engine.E007",
        )


def _pooler(database: Mapping[str, Any]) -> Iterator[CheckMessage]:
    if database.get("DISABLE_SERVER_SIDE_CURSORS") or str(database.get("PORT", "")) in POOLER_PORTS:
        yield Caution(
            "The database seems to be reached through a connection pooler. If it pools transactions, workers hear of "
            "no new work, and hold no locks.",
            hint="Connect clusters directly, or through a pooler that pools sessions.",
            id="engine.W008",
        )


def _cluster_connections(database: Mapping[str, Any]) -> Iterator[CheckMessage]:
    if "qcluster" not in sys.argv[1:2]:
        return
    if database.get("CONN_MAX_AGE", 0) == 0:
        yield Caution(
            'DATABASES["default"]["CONN_MAX_AGE"] is 0: a cluster opens a connection for every task.',
            hint='Set it to 600 and "CONN_HEALTH_CHECKS" to True where qcluster runs.',
            id="engine.W009",
        )
    if database.get("OPTIONS", {}).get("pool"):
        yield Caution(
            "The cluster's database has a connection pool, and each of its processes opens one of its own.",
            hint='Take "pool" out of the OPTIONS where qcluster runs, and set "CONN_MAX_AGE" instead.',
            id="engine.W010",
        )


def judge_server(found: Mapping[str, str]) -> Iterator[CheckMessage]:
    if int(found["server_version_num"]) < OLDEST_POSTGRESQL:
        major = int(found["server_version_num"]) // 10_000
        message = f"The database is PostgreSQL {major}."
        yield Error(message, hint="The engine takes 15 or newer.", id="engine.E006")
    for name, (loss, key) in SERVER_SETTINGS.items():
        if found[name] == "off":
            yield Caution(
                f'PostgreSQL runs with "{name}" off: {loss}.',
                hint=f"Set {name} = on in postgresql.conf.",
                id=key,
            )


def _is_ours(path: object) -> bool:
    """Tell whether the path names our broker or a subclass; without importing django-q for it."""
    if not isinstance(path, str):
        return False
    try:
        broker = import_string(path)
    except ImportError:
        return False
    return any(
        f"{one.__module__}.{one.__qualname__}" == BROKER_CLASS for one in getattr(broker, "__mro__", ())
    )
