"""What the list of instances of a group says of each: its last failure, and the values that may set it apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from engine.status.failures.shares import values_of

# By primary key: the newest attempt of these groups in the current generation. A handler that fails has no attempt.
_LAST = """
    SELECT i.key, a.failed_at, a.number,
        (CASE a.phase WHEN 'do' THEN s.options ELSE s.options -> 'rollback' END ->> 'max_attempts')::int
    FROM engine_instance i
    CROSS JOIN LATERAL (
        SELECT * FROM engine_attempt a
        WHERE a.instance_id = i.key AND a.generation = i.generation AND a.fingerprint = ANY (%(fingerprints)s)
        ORDER BY a.failed_at DESC, a.number DESC LIMIT 1
    ) AS a
    LEFT JOIN engine_step s ON s.instance_id = a.instance_id AND s.generation = a.generation AND s.seq = a.step_seq
    WHERE i.key = ANY (%(keys)s)
"""
_VALUES = """
    SELECT i.key, CASE WHEN pg_column_size(i.params) <= 4096 THEN i.params::text END, i.tags, i.code
    FROM engine_instance i WHERE i.key = ANY (%(keys)s)
"""


@dataclass(frozen=True, slots=True)
class LastFailure:
    """The latest failed attempt of an instance that belongs to a group."""

    at: datetime
    attempt: int
    of: int | None
    """How many attempts the step has; None if it is not recorded."""


def last_failures(fingerprints: Collection[str], keys: Sequence[int]) -> Mapping[int, LastFailure]:
    """Return the last failure of each of these instances that has one in its current generation, by key."""
    with connection.cursor() as cursor:
        cursor.execute(_LAST, {"fingerprints": [*fingerprints], "keys": [*keys]})
        return {key: LastFailure(at, attempt, of) for key, at, attempt, of in cursor.fetchall()}


def values(keys: Sequence[int]) -> Mapping[int, Mapping[str, Sequence[str]]]:
    """Return the values of each of these instances that `shares` compares, by key and by what it is.

    Large params and secrets are left out, as there.
    """
    with connection.cursor() as cursor:
        cursor.execute(_VALUES, {"keys": [*keys]})
        return {key: _by_name(values_of(params, tags, code)) for key, params, tags, code in cursor.fetchall()}


def _by_name(pairs: Collection[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in sorted(pairs):
        found.setdefault(name, []).append(value)
    return found
