"""Running steps that take far longer than usual. Bounded: few instances, and few of their steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

TIMES = 3  # as long as the longest of those that ended last
LEAST_SECONDS = 10.0
LEAST_KNOWN = 5  # ended ones; fewer tell nothing
INSTANCES = 20  # of a workflow, those that ended last
STEPS = 50  # of an instance, the newest

_RUNNING = """
SELECT i.key, i.workflow, running.name, running.started_at,
       extract(epoch FROM clock_timestamp() - running.started_at)::float8
  FROM engine_instance i
 CROSS JOIN LATERAL (
       SELECT s.name, s.started_at, s.kind, s.status FROM engine_step s
        WHERE s.instance_id = i.key AND s.generation = i.generation ORDER BY s.seq DESC LIMIT %(steps)s) AS running
 WHERE i.key = ANY(%(keys)s) AND running.status = 'running' AND running.kind = 'do'
"""
# Row comparisons, as with plain equalities the planner may scan the primary key, past the rows of all other workflows.
_ENDED = """
SELECT name.workflow, done.name, count(*), max(extract(epoch FROM done.finished_at - done.started_at))::float8
  FROM unnest(%(names)s::text[]) AS name(workflow)
 CROSS JOIN LATERAL (
       SELECT i.key, i.generation FROM engine_instance i
        WHERE (i.workflow, i.status) >= (name.workflow, 'complete')
          AND (i.workflow, i.status) <= (name.workflow, 'complete')
        ORDER BY i.workflow, i.status, i.key DESC LIMIT %(instances)s) AS last
 CROSS JOIN LATERAL (
       SELECT s.name, s.started_at, s.finished_at, s.kind, s.status FROM engine_step s
        WHERE s.instance_id = last.key AND s.generation = last.generation ORDER BY s.seq LIMIT %(steps)s) AS done
 WHERE done.kind = 'do' AND done.status = 'complete' AND done.name = ANY(%(steps_of)s)
 GROUP BY name.workflow, done.name
"""


@dataclass(frozen=True, slots=True)
class LongStep:
    """A step that runs far longer than the last ones of its name did."""

    name: str
    started_at: datetime
    usual_seconds: float  # the longest of them


def long_steps(keys: Sequence[int]) -> dict[int, LongStep]:
    """Return by instance the step that runs far longer than usual, the oldest if there are several."""
    if not keys:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_RUNNING, {"keys": list(keys), "steps": STEPS})
        running = [row for row in cursor.fetchall() if row[4] > LEAST_SECONDS]
        if not running:
            return {}
        names, steps_of = {row[1] for row in running}, {row[2] for row in running}
        values: dict[str, Any] = {"names": sorted(names), "steps_of": sorted(steps_of)}
        cursor.execute(_ENDED, values | {"instances": INSTANCES, "steps": STEPS})
        usual = {(workflow, name): longest for workflow, name, n, longest in cursor if n >= LEAST_KNOWN}
    found: dict[int, LongStep] = {}
    for key, workflow, name, started_at, seconds in sorted(running, key=lambda row: row[3], reverse=True):
        longest = usual.get((workflow, name))
        if longest is not None and seconds > TIMES * longest:
            found[key] = LongStep(name, started_at, longest)
    return found
