"""The JSON that subcommands print. docs/command-line.md describes it: a key is added, none is taken away."""

from __future__ import annotations

from typing import Any

from engine.models import Attempt, Audit, Event, Generation, Instance, Step
from engine.requests import is_answer

Shape = dict[str, Any]


def instance(row: Instance) -> Shape:
    """Tell where an instance stands, without its values."""
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


def step(row: Step, attempts: list[Attempt], *, full: bool) -> Shape:
    shape = {
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
    return shape | {"output": None if row.sensitive else row.output} if full else shape


def attempt(row: Attempt, *, full: bool) -> Shape:
    return {
        "number": row.number,
        "phase": row.phase,
        "status": row.status,
        "worker": row.worker,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "error": error(row.error, full=full),
    }


def error(stored: Any, *, full: bool) -> Shape | None:
    """Give type and message of a recorded error, and with `full` all that was kept."""
    if not isinstance(stored, dict):
        return None
    return stored if full else {"type": stored.get("type"), "message": stored.get("message")}


def event(row: Event, *, full: bool) -> Shape:
    shape = {
        "type": row.type,
        "state": row.state,
        "is_answer": is_answer(row.type),
        "dedup_key": row.dedup_key,
        "sent_by": row.sent_by,
        "received_at": row.received_at,
        "consumed_by": row.consumed_by,
        "consumed_generation": row.consumed_generation,
    }
    return shape | {"payload": row.payload} if full else shape


def relative(row: Instance) -> Shape:
    return {"workflow": row.workflow, "id": row.id, "status": row.status}


def generation(row: Generation) -> Shape:
    return {
        "number": row.number,
        "status": row.status,
        "rollback": row.rollback or None,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "error": error(row.error, full=False),
    }


def deed(row: Audit) -> Shape:
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
