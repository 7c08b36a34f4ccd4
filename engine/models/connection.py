"""Connection parameters of the models' database, for connecting without Django."""

from __future__ import annotations

from typing import Any

from django.db import connections

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
