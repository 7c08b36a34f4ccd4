"""How much work comes in, begins and waits, by workflow. Bounded: samples of the newest instances, and capped counts.

A workflow with a million instances costs as much as one with a thousand: each part ends after so many rows of an index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from engine.values.states import InstanceStatus

WINDOW = timedelta(minutes=5)
CAP = 1_001  # counted of a workflow that wait, that are held, or that are paused
SAMPLE = 100  # of a workflow and status, the newest
MOST_WORKFLOWS = 100

# `queued` ones are due at once; woken ones wait for a slot, too, from the end of their sleep or wait. Of a paused
# workflow, only what was released waits for a worker.
_WAITING = """
SELECT name.workflow, due.n, due.oldest_at, paused.n, held.n
  FROM unnest(%(names)s::text[]) AS name(workflow)
  LEFT JOIN engine_workflow_pause p ON p.workflow = name.workflow
 CROSS JOIN LATERAL (
       SELECT count(*) AS n, min(wake_at) AS oldest_at FROM (
              (SELECT i.wake_at FROM engine_instance i
                WHERE p.key IS NULL AND i.workflow = name.workflow AND i.owner IS NULL
                  AND i.wake_at <= (SELECT clock_timestamp())
                ORDER BY i.wake_at LIMIT %(cap)s)
              UNION ALL
              (SELECT i.wake_at FROM engine_instance i WHERE i.released_in = p.key AND i.owner IS NULL
                  AND i.wake_at <= (SELECT clock_timestamp())
                ORDER BY i.wake_at LIMIT %(cap)s)) AS capped) AS due
 CROSS JOIN LATERAL (
       SELECT count(*) AS n FROM (
              SELECT FROM engine_instance i WHERE i.workflow = name.workflow AND i.status = 'paused'
               LIMIT %(cap)s) AS capped) AS paused
 CROSS JOIN LATERAL (
       SELECT count(*) AS n FROM (
              SELECT FROM engine_instance i
               WHERE i.workflow = p.workflow AND i.owner IS NULL AND i.wake_at <= (SELECT clock_timestamp())
                 AND i.released_in IS DISTINCT FROM p.key
               LIMIT %(cap)s) AS capped) AS held
"""

# The newest of each status, and how far back each sample reaches if it was cut before the window began. Only first
# generations: a restart begins anew, long after the instance was created.
_FLOW = """
WITH clock AS (SELECT clock_timestamp() AS now), recent AS MATERIALIZED (
    SELECT name.workflow, status.status, newest.*
      FROM unnest(%(names)s::text[]) AS name(workflow)
     CROSS JOIN unnest(%(statuses)s::text[]) AS status(status)
     CROSS JOIN LATERAL (
           SELECT i.created_at, i.started_at, i.generation FROM engine_instance i
            WHERE i.workflow = name.workflow AND i.status = status.status
            ORDER BY i.key DESC LIMIT %(sample)s) AS newest
)
SELECT workflow, status, count(*) >= %(sample)s AS is_cut,
       extract(epoch FROM max(clock.now) - min(created_at))::float8 AS created_span,
       extract(epoch FROM max(clock.now) - min(started_at))::float8 AS started_span,
       count(*) FILTER (WHERE created_at > clock.now - %(window)s) AS created,
       count(*) FILTER (WHERE started_at > clock.now - %(window)s) AS started,
       extract(epoch FROM percentile_cont(0.95) WITHIN GROUP (ORDER BY started_at - created_at)
           FILTER (WHERE started_at > clock.now - %(window)s AND generation = 1))::float8 AS wait_p95
  FROM recent, clock
 GROUP BY GROUPING SETS ((workflow, status), ())
"""


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits for a worker, of one workflow. At `CAP`, `waiting`, `paused` and `held` say "at least"."""

    workflow: str
    waiting: int = 0
    oldest_at: datetime | None = None  # since when the oldest has been due
    paused: int = 0
    held: int = 0  # due, but the workflow is paused: they wait for no worker
    came_per_minute: float = 0.0  # instances created
    began_per_minute: float = 0.0  # instances that a worker took for the first time

    @property
    def empty_in(self) -> timedelta | None:
        """Return when nothing waits any more if it goes on like this; None if it never will."""
        gain = self.began_per_minute - self.came_per_minute
        return timedelta(minutes=self.waiting / gain) if gain > 0 else None


@dataclass(frozen=True, slots=True)
class Load:
    """The queues of workflows, and for how long instances waited that began in the last five minutes."""

    queues: tuple[Queue, ...]
    wait_p95: timedelta | None  # None if none has begun

    @property
    def waiting(self) -> int:
        return sum(one.waiting for one in self.queues)

    @property
    def paused(self) -> int:
        return sum(one.paused for one in self.queues)

    @property
    def held(self) -> int:
        return sum(one.held for one in self.queues)


def load(names: Sequence[str]) -> Load:
    """Read the load of workflows, of at most `MOST_WORKFLOWS`, with two queries."""
    chosen = list(names)[:MOST_WORKFLOWS]
    flow, wait = _flow(chosen)
    found = {name: counts for name, *counts in _ask(_WAITING, names=chosen, cap=CAP)}
    queues = (_queue(name, found.get(name, (0, None, 0, 0)), flow.get(name, (0.0, 0.0))) for name in chosen)
    return Load(tuple(queues), wait)


def _queue(name: str, counts: Sequence[Any], rates: tuple[float, float]) -> Queue:
    waiting, oldest_at, paused, held = counts
    return Queue(name, waiting, oldest_at, paused, held, *rates)


def _flow(names: Sequence[str]) -> tuple[dict[str, tuple[float, float]], timedelta | None]:
    """Return by workflow how many were created and how many began in a minute, and the 95th percentile of all waits."""
    rates: dict[str, tuple[float, float]] = {}
    wait: float | None = None
    values = {"statuses": [str(one) for one in InstanceStatus], "sample": SAMPLE, "window": WINDOW}
    for name, _, is_cut, created_span, started_span, created, started, p95 in _ask(
        _FLOW, names=names, **values
    ):
        if name is None:  # the row of all
            wait = p95
            continue
        came, began = rates.get(name, (0.0, 0.0))
        came += _per_minute(created, created_span, is_cut=is_cut)
        began += _per_minute(started, started_span, is_cut=is_cut)
        rates[name] = came, began
    return rates, None if wait is None else timedelta(seconds=max(wait, 0.0))


def _per_minute(number: int, span: float | None, *, is_cut: bool) -> float:
    """Return a rate. A sample that was cut within the window tells about the time that it covers."""
    seconds = WINDOW.total_seconds()
    if is_cut and span is not None:
        seconds = min(seconds, max(span, 1.0))
    return number * 60 / seconds


def _ask(query: str, **values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return list(cursor.fetchall())
