"""What is read of the groups that are shown: messages, the last hour, next attempts, and ids of instances."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from engine.models import Instance
from engine.status.failures import sql

BARS, MINUTES = 20, 3
MOST, MOST_ATTEMPTS = 5_000, 300  # failures of a group; attempts are looked up one by one
STEPS = 50  # of an instance, the newest

# When the instances failed that are errored now, and the attempts of those that back off.
_BARS = """
WITH attempts AS MATERIALIZED (
    SELECT f.fingerprint, a.failed_at, a.instance_id
      FROM unnest(%(retrying)s::text[]) AS f (fingerprint)
     CROSS JOIN LATERAL (
           SELECT a.failed_at, a.instance_id FROM engine_attempt a
            WHERE a.fingerprint = f.fingerprint AND a.failed_at > %(since)s
            ORDER BY a.failed_at DESC LIMIT %(most_attempts)s) AS a
), failed AS (
    SELECT f.fingerprint, false AS backs_off, i.finished_at AS at
      FROM unnest(%(fingerprints)s::text[]) AS f (fingerprint)
     CROSS JOIN LATERAL (
           SELECT i.finished_at FROM engine_instance i
            WHERE i.fingerprint = f.fingerprint AND i.status = 'errored' AND i.finished_at > %(since)s
            ORDER BY i.finished_at DESC LIMIT %(most)s) AS i
    UNION ALL
    SELECT a.fingerprint, true, a.failed_at
      FROM attempts a
     CROSS JOIN LATERAL (
           SELECT i.status, i.waiting_for, i.fingerprint FROM engine_instance i
            WHERE i.key = a.instance_id LIMIT 1) AS i
     WHERE i.status = 'waiting' AND i.waiting_for = 'retry' AND i.fingerprint = a.fingerprint
)
SELECT fingerprint, backs_off,
       greatest(least(floor(extract(epoch FROM at - %(since)s) / %(seconds)s)::int, %(last)s), 0), count(*)
  FROM failed GROUP BY 1, 2, 3
"""
_NEXT = """
SELECT i.key, first.failed_at, first.n + 1, (s.options ->> 'max_attempts')::int
  FROM engine_instance i
 CROSS JOIN LATERAL (
       SELECT s.seq, s.kind, s.status, s.options FROM engine_step s
        WHERE s.instance_id = i.key AND s.generation = i.generation ORDER BY s.seq DESC LIMIT %(steps)s) AS s
 CROSS JOIN LATERAL (
       SELECT min(a.failed_at) AS failed_at, count(*) AS n FROM engine_attempt a
        WHERE a.instance_id = i.key AND a.generation = i.generation AND a.step_seq = s.seq AND a.phase = 'do'
          AND a.status IN ('errored', 'timed_out')
          AND a.number > coalesce((s.options ->> 'retried_after')::int, 0)) AS first
 WHERE i.key = ANY (%(keys)s) AND s.kind = 'do' AND s.status = 'waiting'
"""
_LATEST = f"SELECT f.fingerprint, {sql.LATEST} FROM engine_failure f WHERE f.fingerprint = ANY (%s)"  # noqa: S608


@dataclass(frozen=True, slots=True)
class NextAttempt:
    """The next attempt at a step that backs off."""

    failed_at: datetime | None
    """When the step failed first."""
    number: int
    of: int | None


def latest_messages(fingerprints: Collection[str]) -> dict[str, str]:
    """Return the latest message of each group; empty if the step is sensitive."""
    if not fingerprints:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_LATEST, [[*fingerprints]])
        return dict(cursor.fetchall())


def ids_of(keys: Collection[int]) -> dict[int, str]:
    """Return the ids of these instances, by key."""
    return dict(Instance.objects.filter(key__in=keys).values_list("key", "id")) if keys else {}


def last_hour(
    fingerprints: Collection[str], retrying: Collection[str], now: datetime
) -> dict[tuple[str, bool], tuple[int, ...]]:
    """Return by group what failed in the last hour, in 20 bars of three minutes, the earliest first.

    The key says whether it is of the instances of `retrying` that back off, or of those that are errored.
    """
    values: dict[str, Any] = {
        "fingerprints": [*fingerprints],
        "retrying": [*retrying],
        "since": now - timedelta(minutes=BARS * MINUTES),
        "seconds": MINUTES * 60,
        "last": BARS - 1,  # what has failed since the clock was read
        "most": MOST,
        "most_attempts": MOST_ATTEMPTS,
    }
    found: dict[tuple[str, bool], list[int]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_BARS, values)
        for fingerprint, backs_off, bar, number in cursor.fetchall():
            found.setdefault((fingerprint, backs_off), [0] * BARS)[bar] += number
    return {key: (*bars,) for key, bars in found.items()}


def next_attempts(keys: Collection[int]) -> dict[int, NextAttempt]:
    """Return the next attempt of each instance that waits for one. A rollback's is not among them."""
    if not keys:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, {"keys": [*keys], "steps": STEPS})
        return {key: NextAttempt(*about) for key, *about in cursor.fetchall()}
