"""What the engine says about a run, read from its tables once everything has come to rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg


@dataclass(frozen=True)
class InstanceRow:
    key: int
    id: str
    status: str
    output: str | None
    error: dict[str, Any] | None
    lost_alone: int
    rollback: str = ""
    parent: str = ""
    called: str = ""  # the parent's step


@dataclass(frozen=True)
class StepRow:
    """Times are seconds on the monotonic clock of this machine."""

    instance: str
    name: str
    kind: str
    status: str
    attempts: int
    started: float
    finished: float | None
    rollback: str = ""


@dataclass(frozen=True)
class AttemptRow:
    instance: str
    step: str
    number: int
    status: str
    pid: int
    is_alone: bool
    started: float
    finished: float | None


@dataclass(frozen=True)
class EventRow:
    instance: str
    key: str
    dedup_key: str
    payload: Any
    state: str
    received: float
    consumed_by: str | None


@dataclass(frozen=True)
class AuditRow:
    instance: str
    verb: str
    actor: str
    before: str
    after: str
    at: float


# Each generation is told of by a name of its own, as the ledger does (`workflows.label`).
LABEL = "i.id || CASE WHEN {row}.generation > 1 THEN '@' || {row}.generation ELSE '' END"
INSTANCES = """
    SELECT key, id, status, output::text, error,
        (SELECT count(*) FROM engine_attempt a WHERE a.instance_id = i.key AND a.status = 'lost' AND a.quarantined),
        rollback, coalesce((SELECT p.id FROM engine_instance p WHERE p.key = i.parent_key), ''), coalesce((
            SELECT s.name FROM engine_step s
            WHERE s.instance_id = i.parent_key AND s.generation = i.parent_generation AND s.seq = i.parent_step
        ), '')
    FROM engine_instance i
"""
# What a restart has kept ran in an earlier generation, which says so.
STEPS = f"""
    SELECT {LABEL.format(row="s")}, s.name, s.kind, s.status, s.attempts,
        extract(epoch FROM s.started_at)::float8, extract(epoch FROM s.finished_at)::float8, s.rollback
    FROM engine_step s JOIN engine_instance i ON i.key = s.instance_id
    WHERE s.kept_from IS NULL
"""
ATTEMPTS = f"""
    SELECT {LABEL.format(row="a")}, s.name, a.number, a.status, split_part(a.worker, ':', 2)::integer, a.quarantined,
        extract(epoch FROM a.started_at)::float8, extract(epoch FROM a.finished_at)::float8
    FROM engine_attempt a JOIN engine_instance i ON i.key = a.instance_id
    JOIN engine_step s ON s.instance_id = a.instance_id AND s.generation = a.generation AND s.seq = a.step_seq
    WHERE a.phase = %s
"""
SALES = "SELECT instance, step FROM chaos_sale"
EVENTS = """
    SELECT i.id, e.key::text, coalesce(e.dedup_key, ''), e.payload, e.state,
        extract(epoch FROM e.received_at)::float8, s.name
    FROM engine_event e JOIN engine_instance i ON i.key = e.instance_id
    LEFT JOIN engine_step s
        ON s.instance_id = e.instance_id AND s.generation = e.consumed_generation AND s.seq = e.consumed_by
"""
AUDIT = """
    SELECT instance_id, verb, actor, before, after, extract(epoch FROM at)::float8
    FROM engine_audit
    WHERE outcome = 'done' AND verb NOT IN ('retention', 'schedule-pause') AND actor NOT LIKE 'schedule %'
    ORDER BY key
"""
PLANNED = "SELECT instance_id FROM engine_audit WHERE verb = 'start' AND actor LIKE 'schedule %'"
DELETED = """
    SELECT coalesce(sum(told.count::integer), 0)::integer
    FROM engine_audit a CROSS JOIN json_each_text(a.data) AS told (status, count) WHERE a.verb = 'retention'
"""


@dataclass(frozen=True)
class Record:
    instances: dict[str, InstanceRow]
    steps: list[StepRow]
    attempts: list[AttemptRow]
    events: list[EventRow]
    audit: list[AuditRow]
    undoing: list[AttemptRow] = field(default_factory=list)  # the attempts at rollbacks
    sales: list[tuple[str, str]] = field(
        default_factory=list
    )  # instance and step of what atomic bodies wrote
    deleted: int = 0  # instances, by retention
    planned: list[str] = field(default_factory=list)  # ids of what the schedule started, as often as it did

    @classmethod
    def read(cls, connection: psycopg.Connection, offset: float) -> Record:
        """Read everything; `offset` is what the wall clock is ahead of the monotonic one, in seconds."""
        rows = connection.execute(INSTANCES).fetchall()
        steps = connection.execute(STEPS).fetchall()
        attempts = connection.execute(ATTEMPTS, ["do"]).fetchall()
        undoing = connection.execute(ATTEMPTS, ["rollback"]).fetchall()
        events = connection.execute(EVENTS).fetchall()
        audit = connection.execute(AUDIT).fetchall()
        return cls(
            {row[1]: InstanceRow(*row) for row in rows},
            [StepRow(*_at(row, offset, 5, 6)) for row in steps],
            [AttemptRow(*_at(row, offset, 6, 7)) for row in attempts],
            [EventRow(*_at(row, offset, 5)) for row in events],
            [AuditRow(*_at(row, offset, 5)) for row in audit],
            [AttemptRow(*_at(row, offset, 6, 7)) for row in undoing],
            connection.execute(SALES).fetchall(),
            *connection.execute(DELETED).fetchone() or (0,),
            [name for (name,) in connection.execute(PLANNED).fetchall()],
        )


def instance_of(label: str) -> str:
    """Return the id of the instance that is told of by this name, in whatever generation."""
    return label.split("@")[0]


def _at(row: tuple[Any, ...], offset: float, *columns: int) -> Iterator[Any]:
    """Turn the times in these columns into those of the monotonic clock, which is `offset` seconds behind."""
    for column, value in enumerate(row):
        yield value - offset if column in columns and value is not None else value


def plain(value: object) -> str:
    """Write a value so that 1, 1.0 and true, 0.0 and -0.0, and other orders of keys are different texts."""
    return json.dumps(value)
