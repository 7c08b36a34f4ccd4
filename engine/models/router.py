"""Keep an app's tables in the database `default`, whatever else the project has: replicas, or databases of others.

The engine commits a status and what depends on it in one transaction there. A replica would answer with rows of a
moment ago, and tables in another database would stay empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, Error, connections, router
from django.db.models import Model

# Of the server behind any pooler. Both functions may be called by every role.
IDENTITY = "SELECT pg_postmaster_start_time()::text, current_database()"


def keep_in_default(app_label: str) -> None:
    """Put a router for an app before those of the project, which decide about all other apps."""
    ours = DefaultRouter(app_label)
    if ours not in router.routers:
        router.routers.insert(0, ours)


@dataclass(frozen=True, slots=True)
class DefaultRouter:
    """A database router: an app's models are read and written in `default`, and exist nowhere else."""

    app_label: str

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        return DEFAULT_DB_ALIAS if model._meta.app_label == self.app_label else None

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        """Refuse every other database. The project's routers may still refuse `default`, as for a tenant's schema."""
        return False if app_label == self.app_label and not is_default(db) else None


def is_default(alias: str) -> bool:
    """Tell whether an alias leads to the database `default`, maybe past a pooler; also if it does not answer."""
    if alias == DEFAULT_DB_ALIAS:
        return True
    if connections[alias].vendor != "postgresql":
        return False
    try:
        return _are_one(*((one, connections[one].settings_dict["NAME"]) for one in (alias, DEFAULT_DB_ALIAS)))
    except Error:
        return True


@lru_cache
def _are_one(*places: tuple[str, str]) -> bool:
    """Compare databases by alias and name; a test runner changes the names."""
    return len({_identity(alias) for alias, _name in places}) == 1


def _identity(alias: str) -> Any:
    with connections[alias].cursor() as cursor:
        cursor.execute(IDENTITY)
        return cursor.fetchone()
