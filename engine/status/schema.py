"""Check whether the database has the tables that the code expects, and say what to do if not."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import psycopg
from django.apps import apps as registered
from django.db import DEFAULT_DB_ALIAS
from django.db.migrations.loader import MigrationLoader

from engine.models.connection import parameters
from engine.version import VERSION

# The apps that a cluster and the command line use. Other apps check their own tables.
APPS = ("engine", "django_q")

NAMED = 3  # names listed if many are missing
TIMEOUT = 5  # seconds until a database that does not answer is given up

ADVICE = "Run `python manage.py migrate`."

APPLIED = "SELECT app, name FROM django_migrations"


def missing(alias: str = DEFAULT_DB_ALIAS, apps: Collection[str] = APPS) -> list[str]:
    """Return the migrations of these apps that the database lacks, on a connection of its own.

    Raises psycopg.Error if the database does not answer within seconds.
    """
    applied = _applied(alias)
    return sorted(f"{app}.{name}" for app, name in _expected(applied, apps))


def unknown(alias: str = DEFAULT_DB_ALIAS) -> list[str]:
    """Return the migrations of Reprise that the database has and this version has not: a newer version migrated it.

    Raises psycopg.Error as `missing` does.
    """
    ours = {
        config.label: {*config.earlier_migrations}
        for config in registered.get_app_configs()
        if hasattr(config, "earlier_migrations")
    }
    left = {(app, name) for app, name in _applied(alias) if app in ours and name not in ours[app]}
    return sorted(f"{app}.{name}" for app, name in left.difference(_in_files(ours)))


def _applied(alias: str) -> set[tuple[str, str]]:
    options = {**parameters(alias), "connect_timeout": TIMEOUT}
    with psycopg.connect(**options) as connection:
        # For one transaction: through a pooler in transaction mode, the session goes on to serve others.
        connection.execute(f"SET LOCAL statement_timeout = '{TIMEOUT}s'")
        return _applied_on(connection)


def missing_on(connection: psycopg.Connection[Any], apps: Collection[str] = APPS) -> list[str]:
    """Return the same as `missing`, asked on this connection. A transaction in which all are missing has failed."""
    return sorted(f"{app}.{name}" for app, name in _expected(_applied_on(connection), apps))


def _applied_on(connection: psycopg.Connection[Any]) -> set[tuple[str, str]]:
    try:
        return set(connection.execute(APPLIED).fetchall())
    except psycopg.errors.UndefinedTable:
        return set()


def _expected(applied: set[Any], apps: Collection[str]) -> Iterable[tuple[str, str]]:
    if applied.issuperset(_in_files(apps)):
        return  # the usual case, without loading the migrations of all apps
    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    for key, migration in loader.disk_migrations.items():
        is_replaced = bool(migration.replaces) and applied.issuperset(migration.replaces)
        if key[0] in apps and key not in applied and not is_replaced:
            yield key


def _in_files(apps: Collection[str]) -> Iterable[tuple[str, str]]:
    for config in registered.get_app_configs():
        module, _ = MigrationLoader.migrations_module(config.label)
        if config.label in apps and module is not None:
            files = pkgutil.iter_modules(importlib.import_module(module).__path__)
            yield from ((config.label, file.name) for file in files if file.name[0] not in "_~")


def sentence(lacking: Sequence[str]) -> str:
    """Return a sentence about what is missing and what to run."""
    ours_first = sorted(lacking, key=lambda name: (not name.startswith("engine."), name))
    return f"The database lacks the {_named(ours_first)}. {ADVICE}"


def sentence_about_unknown(names: Sequence[str]) -> str:
    """Return a sentence about a database that is too new, what to install, and how to go back to this version."""
    apps = dict.fromkeys(name.partition(".")[0] for name in names)
    undo = " && ".join(f"python manage.py migrate {app} {_last(app)}" for app in apps)
    return (
        f"The database was migrated by a newer version of Reprise: {VERSION} does not know the {_named(names)}. "
        f"Install that version again, or use it to undo its migrations: `{undo}`."
    )


def _last(app: str) -> str:
    """Return the last migration of an app that this version has."""
    return max(name for _, name in _in_files([app]))


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"migration{'s' * (len(names) != 1)} {', '.join(names[:NAMED])}{more}"


def described(alias: str = DEFAULT_DB_ALIAS) -> str:
    """Return the name of the database, without user and password."""
    at = parameters(alias)
    port = f":{at['port']}" if at.get("port") else ""
    return f"{at.get('dbname')} on {at.get('host') or 'the default host'}{port}"
