"""Count events against limits. The counts are in a table, so that all processes share them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection

from studio.models import Throttle

SWEPT = 100  # expired rows that each count deletes


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `most` events called `name` within a time that starts with the first of them."""

    name: str
    most: int
    within: timedelta

    @property
    def key(self) -> str:
        # A name has any length, and may hold a password that was typed into the wrong field.
        return hashlib.sha256(self.name.encode(errors="replace")).hexdigest()


@dataclass(frozen=True, slots=True)
class Count:
    """How many events there were, and how long they still count."""

    limit: Limit
    n: int
    left: timedelta

    @property
    def is_over(self) -> bool:
        return self.n > self.limit.most

    @property
    def is_first_over(self) -> bool:
        return self.n == self.limit.most + 1


_COUNT = """
INSERT INTO studio_throttle AS held (key, n, ends_at)
SELECT key, %s, clock_timestamp() + within
  FROM unnest(%s::text[], %s::interval[]) AS given(key, within)
 ORDER BY key
    ON CONFLICT (key) DO UPDATE
   SET n = CASE WHEN held.ends_at > clock_timestamp() THEN held.n + excluded.n ELSE excluded.n END,
       ends_at = CASE WHEN held.ends_at > clock_timestamp() THEN held.ends_at ELSE excluded.ends_at END
RETURNING key, n, ends_at - clock_timestamp()
"""
_READ = "SELECT key, n, ends_at - clock_timestamp() FROM studio_throttle WHERE key = ANY(%s)"
_TAKE_BACK = "UPDATE studio_throttle SET n = n - 1 WHERE key = ANY(%s) AND n > 0"
# Skip rows that another process deletes or counts right now.
_SWEEP = """
DELETE FROM studio_throttle WHERE key IN (
       SELECT key FROM studio_throttle WHERE ends_at < clock_timestamp() LIMIT %s FOR UPDATE SKIP LOCKED)
"""


def count(limits: Sequence[Limit], *, by: int = 1) -> list[Count]:
    """Count one event for each limit, or `by` at once; return the new counts."""
    with connection.cursor() as cursor:
        cursor.execute(_SWEEP, [SWEPT])
        cursor.execute(_COUNT, [by, [one.key for one in limits], [one.within for one in limits]])
        return _counts(limits, cursor.fetchall())


def counts(limits: Sequence[Limit]) -> list[Count]:
    """Return the counts that have not expired."""
    with connection.cursor() as cursor:
        cursor.execute(_READ, [[one.key for one in limits]])
        found = _counts(limits, cursor.fetchall())
    return [one for one in found if one.left > timedelta(0)]


def take_back(limits: Collection[Limit]) -> None:
    """Undo one event for each limit."""
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_BACK, [[one.key for one in limits]])


def forget(limit: Limit) -> None:
    """Reset a limit."""
    Throttle.objects.filter(key=limit.key).delete()


def _counts(limits: Sequence[Limit], rows: Sequence[tuple[str, int, timedelta]]) -> list[Count]:
    by_key = {one.key: one for one in limits}
    return [Count(by_key[key], n, left) for key, n, left in rows]
