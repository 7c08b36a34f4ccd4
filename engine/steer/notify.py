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
NO_INSTANCE = ""  # something else that pages show

# What `engine_wake` says besides a worker id.
DUE = ""  # something is due
REAP = "reap"  # a worker died: look for what it held
DRAIN = "drain"  # a worker was drained or resumed: look at the own row
PAUSE = "pause"  # a workflow was paused: look at the instances that you hold
QUARANTINE = "quarantine"  # instances may have to be quarantined: for the processes that run those

# PostgreSQL takes payloads shorter than 8,000 bytes.
MAX_PAYLOAD = 7_900


def wake(worker_ids: Iterable[int] = ()) -> None:
    """Tell these workers to look at their instances; without ids, tell every worker with a free slot."""
    to = list(worker_ids)
    tell(wake=not to, worker_ids=to)


def tell(*, wake: bool = False, worker_ids: Iterable[int] = (), changed: Iterable[int] = ()) -> None:
    """Send several notifications in one statement. They arrive at commit, and equal ones of a transaction once."""
    messages = list(_messages(wake, worker_ids, changed))
    if messages:
        channels, payloads = zip(*messages, strict=True)
        with connection.cursor() as cursor:
            cursor.execute(sql.NOTIFY, [list(channels), list(payloads)])


def changed_elsewhere() -> None:
    """Tell open pages that something changed which belongs to no instance, such as a webhook."""
    with connection.cursor() as cursor:
        cursor.execute(sql.NOTIFY, [[CHANGED], [NO_INSTANCE]])


def _messages(wake: bool, worker_ids: Iterable[int], changed: Iterable[int]) -> Iterator[tuple[str, str]]:
    if wake:
        yield WAKE, ""
    for worker_id in worker_ids:
        yield WAKE, str(worker_id)
    keys = ",".join(str(key) for key in changed)
    if keys:
        yield CHANGED, keys if len(keys) <= MAX_PAYLOAD else EVERYTHING
