"""The requests that were closed last: only these are read as a whole."""

from __future__ import annotations

from typing import Any

from django.db import connection

from engine.steer.requests import ENDING_SQL, OPEN_VALUES

# Of those that are over but not recorded, the last that were asked; of the recorded ones, the last to end. When each
# of them ended is what `Entry.ended_at` says. The row comparisons look an answer up by both columns of its index:
# with plain equalities the planner may read all events of an instance, which may be thousands.
_LATEST = f"""
WITH ending AS (
    SELECT r.instance_id, r.generation, r.seq
      FROM (SELECT * FROM engine_open_request ORDER BY opened_at DESC OFFSET 0) AS r
    {ENDING_SQL} LIMIT %(most)s
), ended AS (
    SELECT instance_id, generation, seq FROM engine_ended_request ORDER BY ended_at DESC LIMIT %(most)s
)
SELECT s.instance_id, s.generation, s.seq
  FROM (SELECT * FROM ending UNION SELECT * FROM ended) AS one
 CROSS JOIN LATERAL (
       SELECT s.*, %(type)s || coalesce(s.kept_from, s.generation) || ':' || s.seq AS type FROM engine_step s
        WHERE s.instance_id = one.instance_id AND s.generation = one.generation AND s.seq = one.seq OFFSET 0) AS s
  JOIN engine_instance i ON i.key = s.instance_id
 ORDER BY coalesce(
       (SELECT e.received_at FROM engine_event e
         WHERE (e.instance_id, e.dedup_key) >= (s.instance_id, s.type)
           AND (e.instance_id, e.dedup_key) <= (s.instance_id, s.type) AND e.dedup_key IS NOT NULL LIMIT 1),
       CASE WHEN s.status = 'errored' OR s.status = 'waiting' AND i.ends_as = '' THEN s.wake_at END,
       CASE WHEN s.status <> 'complete' THEN s.finished_at END,
       s.started_at) DESC
 LIMIT %(most)s
"""  # noqa: S608


def latest_closed(most: int) -> list[tuple[int, int, int]]:
    """Return the primary keys of the steps of those that ended last, the latest first, with one query."""
    values: dict[str, Any] = OPEN_VALUES | {"most": most}
    with connection.cursor() as cursor:
        cursor.execute(_LATEST, values)
        return list(cursor.fetchall())
