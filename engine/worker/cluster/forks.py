"""Database connections do not survive a fork."""

from __future__ import annotations

import os
from typing import Any

from django.db import connections

# Dropped on purpose but never collected: the finalizer of such an object (close a socket, stop threads that do not
# exist here) must run only in the parent.
_inherited: list[Any] = []


def guard() -> None:
    """Make every forked child start without its parent's connections and pools. Two processes on one connection would
    read each other's answers."""
    os.register_at_fork(after_in_child=drop_inherited)


def drop_inherited() -> None:
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None:
            _inherited.append(connection.connection)
            connection.connection = None
        pools = getattr(connection, "_connection_pools", None)
        if pools:
            _inherited.append(dict(pools))
            pools.clear()
