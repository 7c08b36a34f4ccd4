"""How to reach the server that Reprise itself uses: from Python, and from PostgreSQL's programs.

The password travels in the environment of a program, never in its arguments, a message or a log.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg
from django.db import connections
from psycopg import pq

from engine import NonRetryableError

# What a program needs of ours. Nothing else: our environment holds secrets that are none of its business.
KEPT_VARIABLES = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")

# What another attempt would only meet again.
HOPELESS = (
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.ReadOnlySqlTransaction,
    psycopg.errors.FeatureNotSupported,
)


def own_database() -> str:
    """Return the name of the database in which Reprise keeps its instances."""
    return str(connections["default"].settings_dict["NAME"])


async def connect(database: str) -> psycopg.AsyncConnection[Any]:
    """Open an autocommit connection to a database of our server."""
    parameters = {**_parameters(), "dbname": database, "application_name": "reprise backup"}
    return await psycopg.AsyncConnection.connect(**parameters, autocommit=True)


async def one_row(
    connection: psycopg.AsyncConnection[Any], query: LiteralString, *values: object
) -> tuple[Any, ...]:
    """Return the only row of a query that always has one."""
    rows: list[tuple[Any, ...]] = await (await connection.execute(query, values)).fetchall()
    [row] = rows
    return row


def environment(database: str) -> dict[str, str]:
    """Return the environment in which PostgreSQL's programs reach a database of our server."""
    variables = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    variables |= {"LC_ALL": "C", "PGCLIENTENCODING": "UTF8"}
    parameters = {**_parameters(), "dbname": database, "application_name": "reprise backup"}
    known = {option.keyword.decode(): option.envvar for option in pq.Conninfo.get_defaults()}
    for keyword, value in parameters.items():
        variable = known.get(keyword)
        if variable is not None:
            variables[variable.decode()] = str(value)
    return variables


@contextmanager
def hopeless_is_final() -> Iterator[None]:
    """Let no attempt follow an error of the server that another attempt would only meet again."""
    try:
        yield
    except HOPELESS as error:
        raise NonRetryableError(f"The server refuses: {str(error).strip()}", cause=error) from error


def _parameters() -> dict[str, Any]:
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    settings = connections["default"].get_connection_params()
    return {name: value for name, value in settings.items() if name in known and value not in (None, "")}
