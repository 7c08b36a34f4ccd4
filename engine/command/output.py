"""The JSON that subcommands print, as docs/command-line.md describes it. Keys may be added, never removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.dry_run.verdict import Finding
from engine.models import Attempt, Audit, Event, Generation, Instance, Step
from engine.status.record import Record
from engine.status.sentences.sentence import as_text
from engine.steer.requests import is_answer

Document = dict[str, Any]


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
    }
    return {
        "instance": about,
        "steps": [step(one, found.attempts.get(one.seq, ()), full=full) for one in found.steps],
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
        "tags": row.tags,
        "started_by": row.started_by,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "wake_at": row.wake_at,
        "deadline_at": row.deadline_at,
        "retention": row.retention,
    }


def step(row: Step, attempts: Sequence[Attempt], *, full: bool) -> Document:
    document = {
        "seq": row.seq,
        "parent": row.parent or None,
        "kind": row.kind,
        "name": row.name,
        "count": row.count,
        "status": row.status,
        "rollback": row.rollback or None,
        "kept_from": row.kept_from,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "wake_at": row.wake_at,
        "sensitive": row.sensitive,
        "error": error(row.error, full=full),
        "attempts": [attempt(one, full=full) for one in attempts],
    }
    return document | {"output": None if row.sensitive else row.output} if full else document


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


def finding(one: Finding) -> Document:
    """Return what a dry run found out about an instance."""
    return {
        "workflow": one.workflow,
        "id": one.id,
        "status": one.status,
        "verdict": one.verdict,
        "error": one.error or None,
        "step": one.step or None,
        "reason": one.reason,
        "new_steps": list(one.new),
        "unreached_steps": list(one.unreached),
    }
