"""The condition for many rows by several columns at once, such as the steps or the attempts of a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL

Columns = Mapping[str, str]  # their names with their types, in the order of the values

STEPS: Columns = {
    "engine_step.instance_id": "bigint",
    "engine_step.generation": "integer",
    "engine_step.seq": "integer",
}
ATTEMPTS: Columns = {
    "engine_attempt.instance_id": "bigint",
    "engine_attempt.generation": "integer",
    "engine_attempt.step_seq": "integer",
    "engine_attempt.number": "integer",
}


def among(columns: Columns, wanted: Iterable[Sequence[Any]]) -> Q:
    """Return the condition for rows with one of these combinations of values.

    The values are one array a column. Django would write a condition for each row instead: for the hundred steps of a
    page, it and PostgreSQL took longer to read them than to find the rows.
    """
    rows = [*wanted]
    values = [[row[place] for row in rows] for place in range(len(columns))]
    arrays = ", ".join(f"%s::{kind}[]" for kind in columns.values())
    condition = f"({', '.join(columns)}) IN (SELECT * FROM unnest({arrays}))"  # noqa: S608 - the names are above
    return Q(RawSQL(condition, values, output_field=BooleanField()))  # noqa: S611
