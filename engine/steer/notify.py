"""Notifications to workers and to the Studio, sent with the transaction of a change.

They are hints; rows are the truth. A worker that misses a notification finds the change at its next sweep.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.db import connection

from engine.steer import sql

WAKE = "engine_wake"
CHANGED = "engine_changed"
EVERYTHING = "*"

# What `engine_wake` says besides an empty text, which means that something is due, and the number of a seat.
REAP = "reap"  # a worker died: look for what it held
ALONE = "alone"  # instances were taken back that may have to run alone: for the processes that run those

# PostgreSQL takes payloads shorter than 8,000 bytes.
MAX_PAYLOAD = 7_900


def wake(seats: Iterable[int] = ()) -> None:
    """Tell the holders of the seats to look at their instances; without seats, whoever has a free slot."""
    to = list(seats)
    tell(wake=not to, seats=to)


def tell(*, wake: bool = False, seats: Iterable[int] = (), changed: Iterable[int] = ()) -> None:
    """Send several notifications in one statement. They arrive at commit, and equal ones of a transaction once."""
    messages = list(_messages(wake, seats, changed))
    if messages:
        channels, payloads = zip(*messages, strict=True)
        with connection.cursor() as cursor:
            cursor.execute(sql.NOTIFY, [list(channels), list(payloads)])


def _messages(wake: bool, seats: Iterable[int], changed: Iterable[int]) -> Iterator[tuple[str, str]]:
    if wake:
        yield WAKE, ""
    for seat in seats:
        yield WAKE, str(seat)
    keys = ",".join(str(key) for key in changed)
    if keys:
        yield CHANGED, keys if len(keys) <= MAX_PAYLOAD else EVERYTHING
