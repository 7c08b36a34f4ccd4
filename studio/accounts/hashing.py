"""Limit how many passwords are hashed at a time: one for every two cores, so that pages are still served.

A hash takes a fifth of a second of a core, and anybody can cause one.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import connection

SLOTS = max(1, len(os.sched_getaffinity(0)) // 2) if hasattr(os, "sched_getaffinity") else 1
MOST_WAITING = 8
MOST_OF_AN_ADDRESS = 4
LONGEST_WAIT_S = 5.0
RETRY_AFTER = timedelta(seconds=5)

_slots = threading.BoundedSemaphore(SLOTS)
_waiting: Counter[str] = Counter()
_lock = threading.Lock()


class BusyError(Exception):
    """Too many are waiting for a slot."""


@contextmanager
def slot(address: str) -> Iterator[None]:
    """Wait for a slot and hold it. Raises BusyError if that takes too long, or if too many wait already."""
    _return_connection()
    with _turn(address):
        if not _slots.acquire(timeout=LONGEST_WAIT_S):
            raise BusyError
    try:
        yield
    finally:
        _slots.release()


def _return_connection() -> None:
    """Return the database connection to the pool while waiting: there are few, and pages need them.

    Without a pool, CONN_MAX_AGE may keep the connection open: it belongs to this thread, so no page waits for it.
    """
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()


@contextmanager
def _turn(address: str) -> Iterator[None]:
    with _lock:
        if _waiting.total() >= MOST_WAITING or _waiting[address] >= MOST_OF_AN_ADDRESS:
            raise BusyError
        _waiting[address] += 1
    try:
        yield
    finally:
        with _lock:
            _waiting[address] -= 1
            if not _waiting[address]:
                del _waiting[address]
