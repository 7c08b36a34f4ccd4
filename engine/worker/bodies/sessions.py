"""The database sessions of a thread that runs bodies: renewed between bodies, and never left in a transaction.

A thread keeps its connections for the next bodies. If one body left a transaction open, the next bodies, of any
instance, would write into it, and nothing would commit it.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from django.db import close_old_connections, connections
from django.db.backends.base.base import BaseDatabaseWrapper

log = logging.getLogger("engine.bodies")

POSTGRESQL_IDLE, POSTGRESQL_UNKNOWN = (
    0,
    4,
)  # psycopg's TransactionStatus; unknown means that the connection is gone


def renew() -> None:
    """Close connections that are too old or broken, as Django does between two requests."""
    close_old_connections()


def renew_shared(*, is_new: bool, is_alone: bool) -> None:
    """Do that on a shared thread: close only broken connections while another body may use a cursor."""
    if is_new and is_alone:
        close_old_connections()
        return
    for connection in connections.all(initialized_only=True):
        if connection.errors_occurred or _is_long_overdue(connection):
            connection.close_if_unusable_or_obsolete()
        elif is_new:
            # It is checked at the next query, if the settings enable that.
            connection.health_check_done = False  # type: ignore[attr-defined]


def end_transactions() -> list[str]:
    """Roll back open transactions of this thread, close their connections, and return their aliases. Never raises."""
    left: list[str] = []
    for connection in connections.all(initialized_only=True):
        try:
            if not _is_open(connection):
                continue
            left.append(connection.alias)
        except Exception:
            log.exception('checking a connection to the database "%s" failed; it is closed', connection.alias)
        _forget(connection)
    return left


def tidy() -> list[str]:
    """Do both after a body, and return what was open. Never raises, whatever the backend does."""
    left = end_transactions()
    try:
        renew()
    except Exception:
        log.exception("renewing the database connections of a thread failed; they are closed")
        close_all()
    return left


def close_all() -> None:
    """Close this thread's connections."""
    for connection in connections.all(initialized_only=True):
        _forget(connection)


def _forget(connection: BaseDatabaseWrapper) -> None:
    try:
        connection.close()
    except Exception:
        log.exception('closing a connection to the database "%s" failed', connection.alias)
    # Inside an atomic() that was never left, Django keeps the closed connection; a new wrapper starts fresh.
    del connections[connection.alias]


def _is_long_overdue(connection: BaseDatabaseWrapper) -> bool:
    """Return whether it has twice its maximum age: a busy thread may never be without a body."""
    max_age = connection.settings_dict["CONN_MAX_AGE"]
    return bool(max_age and connection.close_at) and time.monotonic() >= connection.close_at + max_age


def _is_open(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the next write would not be committed automatically."""
    if connection.in_atomic_block or connection.connection is None:
        return connection.in_atomic_block
    is_changed = connection.autocommit != connection.settings_dict["AUTOCOMMIT"]
    return is_changed or _is_in_transaction(connection)


def _is_in_transaction(connection: BaseDatabaseWrapper) -> bool:
    """Ask the driver, without a round trip: Django does not see transactions started by plain SQL."""
    real: Any = connection.connection
    if connection.vendor == "postgresql":
        return int(real.info.transaction_status) not in (POSTGRESQL_IDLE, POSTGRESQL_UNKNOWN)
    if connection.vendor == "sqlite":
        return bool(real.in_transaction)
    return False
