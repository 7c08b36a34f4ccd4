"""A database that is not PostgreSQL: refused before `migrate` makes any table in it.

A check says the same, but test runners migrate without checks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError
from django.db import connections, router
from django.db.migrations import Migration

from engine.models.instance import Instance


class NotPostgreSQLError(CommandError):
    """The engine's tables cannot be made there. `alias` is that of the database, `vendor` what it is."""

    def __init__(self, alias: str, vendor: str) -> None:
        self.alias, self.vendor = alias, vendor
        super().__init__(
            f'The database "{alias}" is {vendor}, and the engine runs only on PostgreSQL 15 or newer. Change '
            f'DATABASES["{alias}"], or keep the app "engine" out of that database with a router.'
        )


def refuse(using: str, plan: Iterable[tuple[Migration, bool]], **_: Any) -> None:
    """Raise NotPostgreSQLError if `migrate` would make the engine's tables in another kind of database."""
    vendor = connections[using].vendor
    concerns_engine = any(migration.app_label == "engine" for migration, _ in plan)
    if concerns_engine and vendor != "postgresql" and router.allow_migrate_model(using, Instance):
        raise NotPostgreSQLError(using, vendor)
