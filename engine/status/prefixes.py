"""Rows of which only the prefixes of large values are read."""

from __future__ import annotations

from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast, Left, Length


def with_prefixes(rows: Any, *columns: str, length: int) -> Any:
    """Return the query with `<column>_text` and `<column>_size` in place of these JSON columns.

    The text is the first `length` characters, and one more where the value is longer; the size counts all of them.
    """
    found = rows.defer(*columns)
    for column in columns:
        text = Cast(column, TextField())
        found = found.annotate(**{f"{column}_text": Left(text, length + 1), f"{column}_size": Length(text)})
    return found
