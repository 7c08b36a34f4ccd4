"""A worker's own connections, beside Django's: one holds the seat, one writes the journal, one claims and reads."""

from __future__ import annotations

from typing import Any

import psycopg
from django.db import connections

# A worker that died inside a query is noticed by its backend only when it asks; without this, when it ends.
# The journal's and the claim's statements touch few rows by key: a plan made for empty tables must not stay a scan.
SESSION = (
    "SET client_connection_check_interval = 500; SET enable_seqscan = off; SET enable_hashjoin = off; "
    "SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan; SET jit = off"
)
NOT_FOR_PSYCOPG = (
    "context",
    "cursor_factory",
    "prepare_threshold",
    "server_side_binding",
    "pool",
    "assume_role",
)


def parameters(alias: str = "default") -> dict[str, Any]:
    """Return the connection parameters of a Django database, as psycopg takes them."""
    settings = connections[alias].get_connection_params()
    return {name: value for name, value in settings.items() if name not in NOT_FOR_PSYCOPG}


async def connect(application: str, *, is_durable: bool = True) -> psycopg.AsyncConnection[Any]:
    """Open an autocommit connection for the worker's loop.

    Without `is_durable` a commit does not wait for the disk: for claims and leases, which a crash of the database
    takes back anyway, because the seat is gone with it. Raises psycopg.OperationalError if the database is away.
    """
    options = {**parameters(), "application_name": application}
    connection = await psycopg.AsyncConnection.connect(**options, autocommit=True, prepare_threshold=0)
    try:
        await connection.execute(SESSION, prepare=False)
        if not is_durable:
            await connection.execute("SET synchronous_commit = off", prepare=False)
    except BaseException:
        await connection.close()
        raise
    return connection
