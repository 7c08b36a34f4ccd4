"""How long steps usually take, and those that take far longer. Bounded: few instances, and few of their steps."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
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
   AND running.started_at < clock_timestamp() - %(least)s * interval '1 second'
"""
# Row comparisons, as with plain equalities the planner may scan the primary key, past the rows of all other workflows.
_ENDED_LAST = """
SELECT name.workflow, last.key, last.generation, last.finished_at::text
  FROM unnest(%(names)s::text[]) AS name(workflow)
 CROSS JOIN LATERAL (
       SELECT i.key, i.generation, i.finished_at FROM engine_instance i
        WHERE (i.workflow, i.status) >= (name.workflow, 'complete')
          AND (i.workflow, i.status) <= (name.workflow, 'complete')
        ORDER BY i.workflow, i.status, i.key DESC LIMIT %(instances)s) AS last
"""
_STEPS_OF = """
SELECT last.key, done.name, count(*), max(extract(epoch FROM done.finished_at - done.started_at))::float8
  FROM unnest(%(keys)s::bigint[], %(generations)s::int[]) AS last(key, generation)
 CROSS JOIN LATERAL (
       SELECT s.name, s.started_at, s.finished_at, s.kind, s.status FROM engine_step s
        WHERE s.instance_id = last.key AND s.generation = last.generation ORDER BY s.seq LIMIT %(steps)s) AS done
 WHERE done.kind = 'do' AND done.status = 'complete'
 GROUP BY last.key, done.name
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
        cursor.execute(_RUNNING, {"keys": list(keys), "steps": STEPS, "least": LEAST_SECONDS})
        running = cursor.fetchall()
    usual = _longest({row[1] for row in running}) if running else {}
    found: dict[int, LongStep] = {}
    for key, workflow, name, started_at, seconds in sorted(running, key=lambda row: row[3], reverse=True):
        n, longest = usual.get((workflow, name), (0, 0.0))
        if n >= LEAST_KNOWN and seconds > TIMES * longest:
            found[key] = LongStep(name, started_at, longest)
    return found


_Steps = dict[str, tuple[int, float]]  # by name: how many ended, and how many seconds the longest took

# What an instance did in a generation that is complete does not change any more. By its key, generation and end.
_known = OrderedDict[tuple[int, int, str], _Steps]()
_lock = Lock()
MOST_KNOWN = 5_000


def _longest(workflows: Collection[str]) -> dict[tuple[str, str], tuple[int, float]]:
    """Return by workflow and name how many steps ended in the last instances, and how long the longest took."""
    found: dict[tuple[str, str], tuple[int, float]] = {}
    for workflow, steps in _last_steps(workflows):
        for name, (n, longest) in steps.items():
            before, most = found.get((workflow, name), (0, 0.0))
            found[workflow, name] = (before + n, max(most, longest))
    return found


def _last_steps(workflows: Collection[str]) -> Iterator[tuple[str, _Steps]]:
    """Yield the steps of the instances that ended last; those of which they are not known yet are read."""
    with connection.cursor() as cursor:
        cursor.execute(_ENDED_LAST, {"names": sorted(workflows), "instances": INSTANCES})
        last = {(key, generation, end): workflow for workflow, key, generation, end in cursor.fetchall()}
    with _lock:
        known = {one: _known[one] for one in last if one in _known}
    if unknown := [one for one in last if one not in known]:
        read = _read_steps(unknown)
        known |= read
        with _lock:
            _known.update(read)
            while len(_known) > MOST_KNOWN:
                _known.popitem(last=False)
    for one, workflow in last.items():
        yield workflow, known[one]


def _read_steps(ended: Sequence[tuple[int, int, str]]) -> dict[tuple[int, int, str], _Steps]:
    values: dict[str, Any] = {"keys": [one[0] for one in ended], "generations": [one[1] for one in ended]}
    steps: dict[int, _Steps] = {one[0]: {} for one in ended}
    with connection.cursor() as cursor:
        cursor.execute(_STEPS_OF, values | {"steps": STEPS})
        for key, name, n, longest in cursor.fetchall():
            steps[key][name] = (n, longest)
    return {one: steps[one[0]] for one in ended}
