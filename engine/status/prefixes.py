"""Rows read with only prefixes of large values."""

from __future__ import annotations

from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast, Left, Length


def with_prefixes(rows: Any, *columns: str, length: int) -> Any:
    """Return the query with `<column>_text` and `<column>_size` instead of these JSON columns.

    The text has the first `length` characters, and one more if the value is longer; the size counts all characters.
    """
    found = rows.defer(*columns)
    for column in columns:
        text = Cast(column, TextField())
        found = found.annotate(**{f"{column}_text": Left(text, length + 1), f"{column}_size": Length(text)})
    return found
