"""Columns that Django does not have: JSON exactly as written, as values or as text, and numbers of any precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q

from engine.values.serialization import decode, encode
from engine.values.serialization.envelope import STORED

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper


class JsonField(models.Field):  # type: ignore[type-arg]
    """A PostgreSQL `json` column, read and written by the engine's own JSON code.

    `json`, not `jsonb`: jsonb turns 1e16 into an integer and loses -0.0 and the order of keys, so a replay would see
    other values than the first execution. SQL NULL means "no value"; a stored JSON null is also read as None, so a
    nullable column needs the row's status to distinguish the two.
    """

    description = "JSON, kept as text"

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "json"

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        # psycopg would parse `json` with the standard library, which raises on numbers that PostgreSQL accepts.
        return f"({sql})::text", params

    def from_db_value(self, value: str | None, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        return None if value is None else decode(value)

    def get_db_prep_save(self, value: Any, connection: BaseDatabaseWrapper) -> Any:
        if value is None or hasattr(value, "resolve_expression"):
            return value
        return encode(value, what=self.name, envelopes=STORED)

    def get_placeholder(self, value: Any, compiler: Any, connection: BaseDatabaseWrapper) -> str:
        return "%s::json"


class JsonText(models.TextField):  # type: ignore[type-arg]
    """A PostgreSQL `json` column, read and written as text: numbers keep the digits that were typed."""

    description = "JSON, as it was typed"

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "json"

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        return f"({sql})::text", params

    def get_placeholder(self, value: Any, compiler: Any, connection: BaseDatabaseWrapper) -> str:
        return "%s::json"


def times(table: str, *columns: str) -> models.CheckConstraint:
    """Return the constraint that limits the times of a table to years that Python can read: 1970 to 9999."""
    years = Q()
    for column in columns:
        years &= Q(**{f"{column}__gte": "1970-01-01T00:00:00Z", f"{column}__lt": "9999-12-31T00:00:00Z"})
    return models.CheckConstraint(condition=years, name=f"{table}_times")


class NumericField(models.Field):  # type: ignore[type-arg]
    """A PostgreSQL `numeric` column of any precision, read as Decimal. Django's DecimalField limits the digits."""

    description = "Number"

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "numeric"
