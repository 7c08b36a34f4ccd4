"""Limit how long a page waits for queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled


class TooSlowError(Exception):
    """A search took longer than a page waits."""


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Cancel each query in the block after so many seconds. Raises TooSlowError."""
    is_within = connection.in_atomic_block
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = '{seconds * 1000:.0f}ms'")
            yield
            if is_within:  # a transaction of the site, which goes on
                cursor.execute("SET LOCAL statement_timeout = DEFAULT")
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TooSlowError from error
        raise
