"""Places to hash passwords in: one for each two cores of this process, so that pages are served meanwhile.

A hash takes a fifth of a second of a core, and anybody may ask for one.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import connection

PLACES = max(1, len(os.sched_getaffinity(0)) // 2) if hasattr(os, "sched_getaffinity") else 1
MOST_WAITING = 8
MOST_OF_AN_ADDRESS = 4
LONGEST_WAIT_S = 5.0
RETRY_AFTER = timedelta(seconds=5)

_places = threading.BoundedSemaphore(PLACES)
_waiting: Counter[str] = Counter()
_lock = threading.Lock()


class BusyError(Exception):
    """Too many wait already."""


@contextmanager
def place(address: str) -> Iterator[None]:
    """Wait for a place, hold it, and give it back. Raises BusyError where that would take too long."""
    _give_back_connection()
    with _turn(address):
        if not _places.acquire(timeout=LONGEST_WAIT_S):
            raise BusyError
    try:
        yield
    finally:
        _places.release()


def _give_back_connection() -> None:
    """Whoever waits needs no connection; there are few, and pages need them."""
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
