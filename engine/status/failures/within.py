"""What is in groups of failures: their instances, and the newest failure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db import connection

from engine.status.failures import sql
from engine.status.failures.found import FailedAttempt, FailedInstances
from engine.values.serialization import decode

MOST = 200  # in one page


def instances(
    fingerprints: Collection[str], *, which: str = "errored", limit: int = 50, after: str | None = None
) -> FailedInstances:
    """Return the instances whose latest failure is of these groups, the newest first.

    `which` is errored, retrying (they wait for the next attempt), paused, or went_on (all others). The counts are of
    all.
    """
    limit = max(1, min(limit, MOST))
    key = int(after) if after and after.isascii() and after.isdecimal() and len(after) < 19 else None
    values = {"fingerprints": [*fingerprints], "after": key, "limit": limit + 1}
    keys = [row[0] for row in _ask(sql.KEYS.replace("[which]", sql.WHICH[which]), values)]
    (counts,) = _ask(sql.COUNTS, values)
    return FailedInstances(keys[:limit], str(keys[limit - 1]) if len(keys) > limit else None, *counts)


def sample_trace(fingerprints: Collection[str]) -> FailedAttempt | None:
    """Return the newest failure of these groups; None if all have been deleted."""
    values = {"fingerprints": [*fingerprints]}
    rows = _ask(sql.NEWEST_ATTEMPT, values) or _ask(sql.NEWEST_END, values)
    if not rows:
        return None
    row = [*rows[0]]
    kept = None if row[-1] is None else decode(row[-1])
    row[-1] = kept if isinstance(kept, dict) else {}
    return FailedAttempt(*row)


def _ask(statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
