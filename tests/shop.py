"""A table of the application's own, for bodies that write to the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from engine import StepContext
from engine.models import Instance

CREATE = "CREATE TABLE shop_sale (instance text, attempt integer, note text)"
DROP = "SET lock_timeout = '20s'; DROP TABLE shop_sale; RESET lock_timeout"


@contextmanager
def open_shop() -> Iterator[None]:
    """Create the table, and drop it at the end."""
    execute(CREATE)
    try:
        yield
    finally:
        execute(DROP)


def execute(statement: str, *values: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)


def sell(ctx: StepContext, note: str = "sold") -> None:
    """Write a row over the connection of the thread that calls this."""
    execute("INSERT INTO shop_sale VALUES (%s, %s, %s)", ctx.instance_id, ctx.attempt, note)


def sales(instance: Instance) -> list[tuple[int, str]]:
    """Return attempt and note of what is sold for an instance."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attempt, note FROM shop_sale WHERE instance = %s ORDER BY attempt", [instance.id]
        )
        return list(cursor.fetchall())
