"""Whether Reprise works: the database, its workers, and what is overdue. For probes and for monitoring."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import dict_row

from engine.declare.registry import workflows
from engine.models.connection import parameters
from engine.status import schema
from engine.status.limits import MOST, counted
from engine.status.limits import Limits as Limits
from engine.status.servers import ALIVE_FOR
from engine.values.durations import format_duration
from engine.values.system import NOT_SYSTEM

_FACTS = f"""
WITH RECURSIVE every_name AS (
    (SELECT workflow FROM engine_instance ORDER BY workflow LIMIT 1)
    UNION ALL
    SELECT (SELECT workflow FROM engine_instance WHERE workflow > every_name.workflow ORDER BY workflow LIMIT 1)
      FROM every_name WHERE every_name.workflow IS NOT NULL
), name AS (SELECT workflow FROM every_name WHERE {NOT_SYSTEM}
), full_ones AS (
    SELECT l.name FROM unnest(%(limited)s::text[], %(limits)s::integer[]) AS l(name, most)
    WHERE l.most <= (
        SELECT count(*) FROM engine_instance
        WHERE workflow = l.name AND status IN ('running', 'waiting_for_pause')
    )
), due AS (
    SELECT name.workflow, oldest.wake_at FROM name
    LEFT JOIN engine_workflow_pause p ON p.workflow = name.workflow
    CROSS JOIN LATERAL (
        (SELECT wake_at FROM engine_instance i
         WHERE p.key IS NULL AND i.workflow = name.workflow AND i.wake_at <= (SELECT clock_timestamp())
           AND i.owner IS NULL
         ORDER BY wake_at LIMIT %(most)s)
        UNION ALL
        (SELECT wake_at FROM engine_instance i
         WHERE i.released_in = p.key AND i.wake_at <= (SELECT clock_timestamp()) AND i.owner IS NULL
         ORDER BY wake_at LIMIT %(most)s)
    ) AS oldest
    WHERE name.workflow NOT IN (SELECT f.name FROM full_ones f)
), living AS (
    SELECT role, slots, held, seen_at FROM engine_worker WHERE seen_at > clock_timestamp() - %(alive_for)s
), overdue AS (
    SELECT next_at FROM engine_schedule WHERE next_at <= clock_timestamp() - %(overdue)s
)
SELECT
    (SELECT count(*) FROM living WHERE role = 'cluster') AS clusters,
    (SELECT count(*) FROM living WHERE role = 'shift') AS workers,
    (SELECT coalesce(sum(slots), 0)::integer FROM living WHERE role = 'shift') AS slots,
    (SELECT coalesce(sum(held), 0)::integer FROM living WHERE role = 'shift') AS held,
    (SELECT max(seen_at) FROM engine_worker) AS last_heartbeat_at,
    (SELECT least(count(*), %(most)s) FROM due) AS due,
    (SELECT extract(epoch FROM clock_timestamp() - min(wake_at))::float8 FROM due) AS oldest_due_seconds,
    (SELECT workflow FROM due ORDER BY wake_at LIMIT 1) AS oldest_due_workflow,
    (SELECT count(*) FROM (
        SELECT FROM engine_workflow_pause p CROSS JOIN LATERAL (
            SELECT FROM engine_instance i WHERE i.workflow = p.workflow AND i.owner IS NULL
              AND i.wake_at <= (SELECT clock_timestamp()) AND i.released_in IS DISTINCT FROM p.key LIMIT %(most)s
        ) AS of_workflow LIMIT %(most)s
    ) AS held) AS held_by_pause,
    (SELECT count(*) FROM overdue) AS schedules_overdue,
    (SELECT count(*) FROM (
        SELECT FROM name CROSS JOIN LATERAL (
            SELECT FROM engine_instance i WHERE i.workflow = name.workflow AND i.status = 'paused'
              AND i.pause_reason IS NOT NULL LIMIT %(most)s
        ) AS of_workflow LIMIT %(most)s
    ) AS paused) AS paused_by_engine,
    (SELECT count(*) FROM (
        SELECT FROM engine_open_request WHERE expires_at IS NULL OR expires_at > clock_timestamp() LIMIT %(most)s
    ) AS asking) AS open_requests,
    (SELECT count(*) FROM (
        SELECT FROM name CROSS JOIN LATERAL (
            SELECT FROM engine_instance i WHERE i.workflow = name.workflow AND i.status = 'errored'
              AND i.finished_at > now() - interval '1 day' LIMIT %(most)s
        ) AS of_workflow LIMIT %(most)s
    ) AS failed) AS failed_in_24_h
"""  # noqa: S608 - constants of ours

log = logging.getLogger("reprise.health")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the tables say. Counts end at MOST.

    Instances of workflows at their `max_running` are not due, nor are those that the pause of their workflow holds.
    """

    clusters: int
    workers: int  # that run workflows, with a heartbeat in the last 20 seconds
    slots: int
    held: int
    last_heartbeat_at: datetime | None
    due: int
    oldest_due_seconds: float | None
    oldest_due_workflow: str | None
    held_by_pause: int
    schedules_overdue: int
    paused_by_engine: int
    open_requests: int
    failed_in_24_h: int

    @property
    def need_somebody(self) -> int:
        """Count the instances that do not go on by themselves: paused by the engine, or waiting for an answer."""
        return self.paused_by_engine + self.open_requests


@dataclass(frozen=True, slots=True)
class Health:
    """Whether everything is well, and if not, why, one sentence for each problem."""

    is_ready: bool  # the database answers and is migrated
    problems: tuple[str, ...]
    facts: Facts | None  # None if it is not ready

    @property
    def is_healthy(self) -> bool:
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        facts = {} if self.facts is None else asdict(self.facts) | {"need_somebody": self.facts.need_somebody}
        return {"is_healthy": self.is_healthy, "problems": list(self.problems), **facts}


def read(
    *,
    limits: Limits | None = None,
    timeout: timedelta,
    apps: Collection[str] = schema.APPS,
    alias: str = "default",
    with_facts: bool = True,
) -> Health:
    """Ask the database, on a connection of its own, for at most about twice this time.

    The problems name no address, user or password. What the database said is logged.
    """
    limits = limits or Limits()
    try:
        with _connected(alias, timeout) as connection:
            lacking = schema.missing_on(connection, apps)
            if lacking:
                return Health(False, (schema.sentence(lacking),), None)
            facts = _facts(connection, limits) if with_facts else None
    except psycopg.errors.QueryCanceled:
        return Health(False, (f"The database did not answer within {format_duration(timeout)}.",), None)
    except psycopg.Error as error:
        log.info("The database does not answer: %s", error)
        return Health(False, (f"The database does not answer ({type(error).__name__}).",), None)
    return Health(True, tuple(() if facts is None else _problems(facts, limits)), facts)


def _connected(alias: str, timeout: timedelta) -> psycopg.Connection[Any]:
    milliseconds = max(int(timeout.total_seconds() * 1000), 1)
    options = {
        **parameters(alias),
        "connect_timeout": max(int(timeout.total_seconds()), 2),  # less is not possible
        "tcp_user_timeout": milliseconds,
    }
    connection = psycopg.connect(**options)
    # For one transaction: through a pooler in transaction mode, the session goes on to serve others.
    connection.read_only = True
    connection.execute(f"SET LOCAL statement_timeout = {milliseconds}")
    return connection


def _facts(connection: psycopg.Connection[Any], limits: Limits) -> Facts:
    declared = workflows.limits()
    values = {
        "limited": list(declared),
        "limits": list(declared.values()),
        "most": MOST,
        "alive_for": ALIVE_FOR,
        "overdue": limits.max_due,
    }
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(_FACTS, values).fetchone()
    assert row is not None
    return Facts(**row)


def _problems(facts: Facts, limits: Limits) -> Iterator[str]:
    if facts.workers < limits.min_workers:
        yield _of_workers(facts, limits)
    late = facts.oldest_due_seconds
    if late is not None and late > limits.max_due.total_seconds():
        due = "1 instance is" if facts.due == 1 else f"{counted(facts.due)} instances are"
        since = format_duration(timedelta(seconds=late))
        yield f'{due} due and not claimed, the oldest for {since}, of workflow "{facts.oldest_due_workflow}".'
    if facts.schedules_overdue:
        which = (
            "1 schedule is" if facts.schedules_overdue == 1 else f"{facts.schedules_overdue} schedules are"
        )
        yield f"{which} overdue by more than {format_duration(limits.max_due)}."
    if limits.max_paused is not None and facts.paused_by_engine > limits.max_paused:
        paused = (
            "1 instance is"
            if facts.paused_by_engine == 1
            else f"{counted(facts.paused_by_engine)} instances are"
        )
        yield f"{paused} paused by the engine; at most {limits.max_paused:,} may be."


def _of_workers(facts: Facts, limits: Limits) -> str:
    if facts.workers:
        return f"{facts.workers} of at least {limits.min_workers} workers are running."
    if facts.clusters:
        return "No worker is running, so no workflow runs; a cluster is starting or stopping."
    return "No worker is running, so no workflow runs."
