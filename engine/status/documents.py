"""The JSON in which commands and the HTTP API show what is recorded, as docs/command-line.md describes it.

Keys may be added, never removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from engine.declare.registry import Workflow, workflows
from engine.models import Attempt, Audit, Event, Generation, Instance, Log, ScheduleRow, Step, Worker
from engine.status.facts import Servers, StatusFacts
from engine.status.health import Health
from engine.status.holds import PausedWorkflow
from engine.status.json_text import Document as Document
from engine.status.json_text import as_json as as_json
from engine.status.record import Record
from engine.status.searching.found import Searched
from engine.status.sentences.sentence import as_text
from engine.status.sentences.status_line import short_line
from engine.status.steps import items_of
from engine.steer import schedules
from engine.steer.pauses import Resumed
from engine.steer.requests import Asked, is_answer
from engine.steer.restart import PlannedStep, RestartPlan
from engine.steer.workers import Drained, drain_of
from engine.values.errors import RepriseError

UPCOMING = 5  # times at which a schedule fires


def record(found: Record, *, steps_total: int, full: bool) -> Document:
    """Return everything that was read of an instance in one generation."""
    row = found.instance
    about = instance(row) | {
        "why": as_text(found.status_line, found.facts.now),
        "params": row.params,
        "output": row.output,
        "error": error(row.last_problem, full=full),
        "pause_reason": error(row.pause_reason, full=full),
        "unreached": row.unreached,
        "parent": relation(found.parent) if found.parent else None,
        "began_at": found.began_at,
    }
    return {
        "now": found.facts.now,
        "instance": about,
        "steps": steps(row, found.steps, found.attempts, full=full),
        "steps_total": steps_total,
        "events": [event(one, full=full) for one in found.events],
        "events_total": found.count_events(),
        "children": [relation(child) for child in found.children],
        "children_total": found.children_total,
        "generations": [generation(one) for one in found.generations.earlier],
        "audit": [action(entry) for entry in found.audit],
    }


def instance(row: Instance) -> Document:
    """Return the state of an instance, without its values."""
    return {
        "workflow": row.workflow,
        "id": row.id,
        "generation": row.generation,
        "status": row.status,
        "waiting_for": row.waiting_for or None,
        "rollback": row.rollback or None,
        "ends_as": row.ends_as or None,
        "tags": row.tags,
        "started_by": row.started_by,
        "created_at": row.created_at,
        "starts_at": row.starts_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "wake_at": row.wake_at,
        "deadline_at": row.deadline_at,
        "retention": row.retention,
    }


def steps(
    of: Instance, rows: Sequence[Step], attempts: Mapping[int, Sequence[Attempt]], *, full: bool
) -> list[Document]:
    """Return steps of an instance with their attempts, which are by step number, and the numbers of their items."""
    items = items_of(of, rows)
    return [step(row, attempts.get(row.seq, ()), full=full) | {"items": items.get(row.seq)} for row in rows]


def step(row: Step, attempts: Sequence[Attempt], *, full: bool) -> Document:
    document = {
        "seq": row.seq,
        "parent": row.parent or None,
        "kind": row.kind,
        "name": row.name,
        "count": row.count,
        "label": str(row),
        "status": row.status,
        "rollback": row.rollback or None,
        "kept_from": row.kept_from,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "wake_at": row.wake_at,
        "sensitive": row.sensitive,
        "error": error(row.error, full=full),
        "is_exhausted": row.is_exhausted,
        "decision": decision(row),
        "attempts": [attempt(one, full=full) for one in attempts],
        "attempts_total": row.attempts,
    }
    return document | {"output": None if row.sensitive else row.output} if full else document


def decision(row: Step) -> Document | None:
    """Return what a person has decided about the step when its attempts were used up, or instead of waiting."""
    found: Any = row.options.get("decision") if isinstance(row.options, dict) else None
    return {"outcome": found["outcome"], "by": found["by"]} if isinstance(found, dict) else None


def attempt(row: Attempt, *, full: bool) -> Document:
    return {
        "number": row.number,
        "phase": row.phase,
        "status": row.status,
        "worker": row.worker,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "error": error(row.error, full=full),
    }


def error(stored: Any, *, full: bool) -> Document | None:
    """Return type and message of a recorded error, and with `full` everything that was recorded."""
    if not isinstance(stored, dict):
        return None
    return stored if full else {"type": stored.get("type"), "message": stored.get("message")}


def event(row: Event, *, full: bool) -> Document:
    document = {
        "type": row.type,
        "state": row.state,
        "is_answer": is_answer(row.type),
        "dedup_key": row.dedup_key,
        "sent_by": row.sent_by,
        "received_at": row.received_at,
        "consumed_by": row.consumed_by,
        "consumed_generation": row.consumed_generation,
    }
    return document | {"payload": row.payload} if full else document


def relation(row: Instance) -> Document:
    return {"workflow": row.workflow, "id": row.id, "status": row.status}


def generation(row: Generation) -> Document:
    return {
        "number": row.number,
        "status": row.status,
        "rollback": row.rollback or None,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "error": error(row.last_problem, full=False),
        "pause_reason": error(row.pause_reason, full=False),
    }


def action(row: Audit) -> Document:
    return {
        "at": row.at,
        "verb": row.verb,
        "actor": row.actor,
        "before": row.before,
        "after": row.after,
        "outcome": row.outcome,
        "reason": row.reason,
        "data": row.data,
    }


def listed(row: Instance, facts: StatusFacts) -> Document:
    """Return an instance as lists show it."""
    return instance(row) | {"why": as_text(short_line(facts), facts.now)}


def workflow(name: str, counts: Mapping[str, int], servers: Servers) -> Document:
    """Return a workflow, declared or not, with its instances by status."""
    declared: Workflow[Any, Any] | None = workflows.get(name)
    return {
        "name": name,
        "is_declared": declared is not None,
        "description": declared.description if declared else "",
        "params_schema": _schema(declared) if declared else None,
        "max_running": declared.max_running if declared else None,
        "retention": declared.retention.seconds() if declared else None,
        "counts": counts,
        "workers": servers.count,
    }


def _schema(declared: Workflow[Any, Any]) -> object:
    try:
        return declared.params_schema()
    except RepriseError:  # a type without a schema
        return None


def schedule(row: ScheduleRow, last: Instance | None = None, now: datetime | None = None) -> Document:
    """Return a schedule, the instance that it started last, and the next times at which it fires."""
    return {
        "workflow": row.workflow,
        "name": row.name,
        "expression": row.expression,
        "timezone": row.timezone,
        "params": row.params,
        "is_declared": row.is_declared,
        "paused_at": row.paused_at,
        "paused_by": row.paused_by,
        "next_at": row.next_at,
        "upcoming": schedules.upcoming(row, UPCOMING, now=now),
        "last_planned_at": row.last_planned_at,
        "last_instance": relation(last) if last else None,
        "last_started_at": last.created_at if last else row.last_planned_at,
        "last_missed": row.last_missed,
        "last_error": row.last_error or None,
    }


def searched(found: Searched) -> Document:
    """Return how much a search has looked at."""
    return {"rows": found.rows, "of": found.of, "hint": found.hint or None}


def plan(found: RestartPlan) -> Document:
    """Return what a restart would do."""
    return {
        "generation": found.generation,
        "keeps": [_planned(one) for one in found.keeps],
        "runs_again": [_planned(one) for one in found.runs_again],
        "returned_events": found.returned_events,
        "dropped_events": found.dropped_events,
        "ended_children": found.ended_children,
        "refused": found.refused or None,
        "keys_spent": found.keys_spent or None,
    }


def _planned(one: PlannedStep) -> Document:
    return {"seq": one.seq, "kind": one.kind, "name": one.name, "count": one.count, "status": one.status}


def health(found: Health, now: datetime) -> Document:
    """Return whether it works, and the facts if the database answers."""
    return found.to_json() | ({} if found.facts is None else {"now": now})


def action_on(row: Audit) -> Document:
    """Return a row of the audit trail with what it is about."""
    return action(row) | {"workflow": row.workflow, "id": row.instance_id}


def log(row: Log) -> Document:
    """Return a line of an instance's log."""
    return {
        "at": row.at,
        "level": row.level,
        "message": row.message,
        "fields": row.fields,
        "step": row.step_seq,
        "attempt": row.attempt,
        "generation": row.generation,
    }


def request(row: Instance, step: Step) -> Document:
    """Return a request of an instance to people."""
    asked = Asked.of(step)
    return {
        "workflow": row.workflow,
        "id": row.id,
        "seq": step.seq,
        "name": step.name,
        "message": asked.message,
        "schema": asked.schema,
        "assignees": list(asked.assignees),
        "opened_at": step.started_at,
        "expires_at": step.wake_at,
    }


def worker(row: Worker, among: Sequence[Worker] = ()) -> Document:
    """Return a process that serves workflows. It also drains if its cluster, which is among these rows, does."""
    drain = drain_of(row, among)
    return {
        "role": row.role,
        "name": row.name,
        "workflows": list(row.workflows),
        "slots": row.slots,
        "held": row.held,
        "started_at": row.started_at,
        "seen_at": row.seen_at,
        "cluster": row.cluster,
        "version": row.version,
        "code": row.code,
        "memory": row.memory,
        "drained_at": drain.drained_at if drain else None,
        "drained_by": drain.drained_by if drain else "",
        "drain_reason": drain.drain_reason if drain else "",
    }


def drained(found: Drained) -> Document:
    """Return a worker that was drained or resumed, and what to know about it."""
    return {"worker": worker(found.worker), "warnings": list(found.warnings)}


def paused_workflow(found: PausedWorkflow) -> Document:
    """Return the pause of a workflow, and how many of its instances it holds."""
    pause = found.pause
    return {
        "workflow": pause.workflow,
        "paused_at": pause.paused_at,
        "paused_by": pause.paused_by,
        "reason": pause.reason,
        "released": pause.released,
        "held": found.held,
    }


def resumed_workflow(done: Resumed) -> Document:
    """Return what a resume of a workflow has done."""
    return {
        "workflow": done.workflow,
        "released": done.released,
        "held": done.held,
        "is_paused": done.is_paused,
    }
