"""Limit how long a page waits for queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled


class TooSlowError(Exception):
    """A search took longer than a page waits."""


@contextmanager
def patience(seconds: int) -> Iterator[None]:
    """Cancel queries in the block after so many seconds. Raises TooSlowError."""
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = '{seconds:d}s'")
            yield
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TooSlowError from error
        raise
