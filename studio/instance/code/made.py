"""The steps of an instance, counted by the item of the drawing that made them. Never all rows, however many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from engine.models import Instance
from engine.values.identity import TOP
from studio.diagram.matching import Family

# Grouped by family and number among equals; of each group, the step that matters most: one on which somebody has to
# decide, else one that is retried, else one that runs or waits, else the latest.
_MADE = r"""
WITH named AS (
  SELECT s.seq, s.kind, s.name, s.status, s.kind = 'do' AND s.status = 'waiting' AND s.error IS NOT NULL AS is_stuck,
         coalesce(said.family, fits.family) AS family,
         least(s.count, coalesce(said.most, fits.most)) AS nth
    FROM engine_step s
    LEFT JOIN unnest(%(kinds)s::text[], %(names)s::text[], %(likes)s::text[], %(most)s::int[]) WITH ORDINALITY
           AS said(kind, name, pattern, most, family)
           ON said.pattern = '' AND said.kind = s.kind AND said.name = s.name
    LEFT JOIN LATERAL (
         SELECT one.family, one.most
           FROM unnest(%(kinds)s::text[], %(likes)s::text[], %(most)s::int[]) WITH ORDINALITY
                AS one(kind, pattern, most, family)
          WHERE said.family IS NULL AND one.pattern <> '' AND one.kind = s.kind AND s.name LIKE one.pattern
          ORDER BY one.family LIMIT 1) AS fits ON true
   WHERE s.instance_id = %(key)s AND s.generation = %(generation)s AND s.parent = %(top)s),
counted AS (
  SELECT family, nth, count(*) AS times, count(*) FILTER (WHERE status = 'errored') AS failed,
         coalesce(max(seq) FILTER (WHERE is_stuck),
                  max(seq) FILTER (WHERE status = 'waiting' AND kind = 'do'),
                  max(seq) FILTER (WHERE status IN ('running', 'waiting')),
                  max(seq)) AS seq
    FROM named GROUP BY family, nth)
SELECT c.family, c.nth, c.times, c.failed, s.seq, s.kind, s.name, s.count, s.status, s.attempts,
       (s.options ->> 'max_attempts')::int, s.error IS NOT NULL, s.wake_at, s.wake_is_fixed, s.started_at, s.finished_at
  FROM counted c
  JOIN engine_step s
    ON s.instance_id = %(key)s AND s.generation = %(generation)s AND s.seq = c.seq
"""


@dataclass(frozen=True, slots=True)
class Shown:
    """The step that a part of the drawing shows."""

    seq: int
    kind: str
    name: str
    count: int
    status: str
    attempts: int
    max_attempts: int | None
    has_error: bool
    wake_at: datetime | None
    wake_is_fixed: bool
    started_at: datetime
    finished_at: datetime | None

    @property
    def is_stuck(self) -> bool:
        """Whether its attempts are used up and somebody has to decide what follows."""
        return self.kind == "do" and self.status == "waiting" and self.has_error

    @property
    def took(self) -> timedelta | None:
        return self.finished_at - self.started_at if self.finished_at else None

    @property
    def weight(self) -> tuple[int, int]:
        """Of several steps, the one with the highest is shown."""
        if self.finished_at is not None:
            return 0, self.seq
        retried = 2 if self.kind == "do" else 0
        return (3 if self.is_stuck else retried if self.status == "waiting" else 1), self.seq


@dataclass(frozen=True, slots=True)
class Group:
    """The steps of one family that have the same number among equals."""

    times: int
    failed: int
    step: Shown


@dataclass(frozen=True, slots=True)
class Made:
    """What an instance has made: groups by family and number, and those that belong to no family."""

    groups: Mapping[tuple[int, int], Group]
    loose: Group | None


def made_by(instance: Instance, of: Sequence[Family]) -> Made:
    """Count the steps of the handler, with one query."""
    values: dict[str, Any] = {
        "kinds": [one.kind for one in of],
        "names": [one.name for one in of],
        "likes": [one.like for one in of],
        "most": [one.most for one in of],
        "key": instance.key,
        "generation": instance.generation,
        "top": TOP,
    }
    groups: dict[tuple[int, int], Group] = {}
    loose: Group | None = None
    with connection.cursor() as cursor:
        cursor.execute(_MADE, values)
        for family, nth, times, failed, *step in cursor.fetchall():
            group = Group(times, failed, Shown(*step))
            if family is None:
                loose = group
            else:
                groups[family - 1, nth] = group
    return Made(groups, loose)
