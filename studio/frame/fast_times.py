"""Read times from the database with Python's own parser: ten times as fast as psycopg, for a thousand on a page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from psycopg.postgres import types
from psycopg.pq import Format

TIMES = types["timestamptz"].oid


def connect() -> None:
    """Do so for each connection that Django opens from now on."""
    connection_created.connect(_read_fast, dispatch_uid=__name__)


def _read_fast(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Register the parser for a connection whose times are in UTC. What it cannot read is left to the one before it."""
    adapters = getattr(connection.connection, "adapters", None)
    if adapters is None or connection.timezone is not UTC:  # other databases, and psycopg2, have no adapters
        return
    before = adapters.get_loader(TIMES, Format.TEXT)
    if not hasattr(before, "is_fast"):  # a pool gives the same connection again
        adapters.register_loader(TIMES, type("FastLoader", (_Fast, before), {}))


class _Fast:
    is_fast = True

    def load(self, data: Any) -> Any:
        text = str(data, "ascii")
        if text.endswith("+00"):  # neither infinite, nor before Christ, nor in another format
            try:
                return datetime.fromisoformat(text)
            except ValueError:  # after the year 9999
                pass
        return super().load(data)  # type: ignore[misc]  # of the loader before, which comes next
