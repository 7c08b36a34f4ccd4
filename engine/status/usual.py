"""How long steps usually take, and those that take far longer. Bounded: few instances, and few of their steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

TIMES = 3  # as long as the longest of those that ended last
LEAST_SECONDS = 10.0
LEAST_KNOWN = 5  # ended ones; fewer tell nothing
INSTANCES = 20  # of a workflow, those that ended last
STEPS = 50  # of an instance, the newest
RUNS = 100  # of a workflow, those that ended last, for the durations of one step
LEAST_RUNS = 20

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
# The last attempt of each: what a step took includes its back-offs.
_DURATIONS = """
SELECT count(*), percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY done.seconds)
  FROM (SELECT i.key, i.generation FROM engine_instance i
         WHERE (i.workflow, i.status) >= (%(workflow)s, 'complete')
           AND (i.workflow, i.status) <= (%(workflow)s, 'complete')
         ORDER BY i.workflow, i.status, i.key DESC LIMIT %(instances)s) AS last
 CROSS JOIN LATERAL (
       SELECT s.seq FROM engine_step s
        WHERE s.instance_id = last.key AND s.generation = last.generation ORDER BY s.seq LIMIT %(steps)s) AS early
  JOIN engine_step s ON s.instance_id = last.key AND s.generation = last.generation AND s.seq = early.seq
 CROSS JOIN LATERAL (
       SELECT extract(epoch FROM a.finished_at - a.started_at)::float8 AS seconds FROM engine_attempt a
        WHERE a.instance_id = s.instance_id AND a.generation = s.generation AND a.step_seq = s.seq
          AND a.phase = 'do' AND a.status = 'complete'
        ORDER BY a.number DESC LIMIT 1) AS done
 WHERE s.kind = 'do' AND s.status = 'complete' AND s.name = %(name)s AND s.kept_from IS NULL
"""


@dataclass(frozen=True, slots=True)
class Durations:
    """How long the successful attempts at a step took in the last runs."""

    runs: int
    median: timedelta
    p95: timedelta


def durations(workflow: str, name: str) -> Durations | None:
    """Return how long a step of that name usually takes, or None if too few of them ended."""
    values: dict[str, Any] = {"workflow": workflow, "name": name, "instances": RUNS, "steps": STEPS}
    with connection.cursor() as cursor:
        cursor.execute(_DURATIONS, values)
        runs, found = cursor.fetchone()
    if runs < LEAST_RUNS:
        return None
    median, p95 = (timedelta(seconds=seconds) for seconds in found)
    return Durations(runs, median, p95)


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
