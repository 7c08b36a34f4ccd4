"""From stored instances to what a list shows of them."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from engine.models import Attempt, Audit, Instance, Step
from studio import inbox, queries, standing, why
from studio.shown import shown


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a list."""

    instance: Instance
    status: str
    now: why.Sentence

    @property
    def started_at(self) -> datetime:
        return self.instance.started_at or self.instance.created_at

    @property
    def took(self) -> timedelta | None:
        finished = self.instance.finished_at
        return finished - self.started_at if finished else None


def rows_of(instances: Sequence[Instance]) -> list[Row]:
    """Make the lines of a page with five queries, however long it is."""
    steps = queries.open_steps(instances)
    attempts = queries.last_attempts(step for found in steps.values() for step in found)
    servers = queries.servers_of({instance.workflow for instance in instances})
    deeds = last_deeds(instances)
    now = queries.database_now()
    asking = inbox.asking(instance.key for instance in instances if not instance.is_finished)
    return [
        Row(
            instance,
            shown(
                instance.status,
                instance.waiting_for,
                asks=any(step.pk in asking for step in steps[instance.key]),
            ),
            why.in_short(
                situation(
                    instance,
                    now=now,
                    servers=servers[instance.workflow],
                    steps=open_steps(steps[instance.key], attempts, asking),
                    deed=deeds.get(instance.key),
                    error=beginning_of_error(getattr(instance, "error_text", None)),
                )
            ),
        )
        for instance in instances
    ]


def situation(
    instance: Instance,
    *,
    now: datetime,
    servers: queries.Servers,
    steps: Sequence[standing.OpenStep],
    deed: standing.Deed | None,
    error: dict[str, object] | None,
    steps_complete: int = 0,
    rollback: standing.Rollback | None = None,
) -> standing.Situation:
    """Gather the facts of the why-line."""
    return standing.Situation(
        status=instance.status,
        waiting_for=instance.waiting_for,
        workflow=instance.workflow,
        now=now,
        created_at=instance.created_at,
        started_at=instance.started_at,
        finished_at=instance.finished_at,
        paused_at=instance.paused_at,
        wake_at=instance.wake_at,
        servers=servers.count,
        slots_free=servers.slots_free,
        steps=steps,
        steps_complete=steps_complete,
        deed=deed,
        error=error,
        rollback=rollback or (standing.Rollback(instance.rollback) if instance.rollback else None),
    )


def open_steps(
    steps: Sequence[Step], attempts: Mapping[tuple[int, int], Attempt], asking: Container[object]
) -> list[standing.OpenStep]:
    """Tell what is to be known of the open steps of an instance. Where a map is open, its items are what happens."""
    maps = {step.seq for step in steps if step.kind == "map"}
    active = {step.parent for step in steps}
    return [
        _open_step(
            step,
            f"{step.name}[{step.count - 1}]" if step.parent in maps else str(step),
            attempts.get((step.instance_id, step.seq)),
            step.pk in asking,
        )
        for step in steps
        if not (step.seq in maps and step.seq in active)
    ]


def _open_step(step: Step, name: str, attempt: Attempt | None, is_asking: bool) -> standing.OpenStep:
    options: Any = step.options if isinstance(step.options, dict) else {}
    most = options.get("max_attempts")
    # Between two attempts the worker may still hold the instance: the attempt's own end tells it.
    is_waiting = step.status == "waiting"
    return standing.OpenStep(
        seq=step.seq,
        name=name,
        kind=step.kind,
        is_waiting=is_waiting,
        started_at=attempt.started_at if attempt and not is_waiting else step.started_at,
        wake_at=step.wake_at,
        attempts=step.attempts,
        max_attempts=most if isinstance(most, int) else None,
        lost=step.lost,
        event_types=tuple(step.event_types or ()),
        worker=attempt.worker if attempt else "",
        error=error_line(attempt.error if attempt else None),
        is_asking=is_asking,
        asked_of=tuple(options.get("assignees") or ()) if is_asking else (),
        message=str(options.get("message", "")) if is_asking else "",
        relative=str(options.get("id", "")) if step.kind == "child" else "",
        is_child=options.get("operation") != "wait_for_instance",
        branches=int(options.get("branches", 0)) if step.kind == "parallel" else 0,
    )


def error_line(error: object, length: int = 160) -> str:
    """Give class and message of a recorded error on one line."""
    if not isinstance(error, dict):
        return ""
    message = " ".join(str(error.get("message") or "").split())
    text = f"{error.get('type') or 'Error'}: {message}" if message else str(error.get("type") or "")
    return text if len(text) <= length else text[: length - 1] + "…"


def last_deeds(instances: Sequence[Instance]) -> dict[int, standing.Deed]:
    """Find who paused or terminated each of them last."""
    verbs = {"paused": "pause", "waiting_for_pause": "pause", "terminated": "terminate"}
    wanted = {instance.key: verbs[instance.status] for instance in instances if instance.status in verbs}
    found: dict[int, standing.Deed] = {}
    trail = Audit.objects.filter(instance_key__in=wanted, verb__in={*wanted.values()}, outcome="done")
    for entry in trail.order_by("key") if wanted else ():
        if entry.instance_key is not None and wanted[entry.instance_key] == entry.verb:
            found[entry.instance_key] = standing.Deed(entry.actor, entry.at, entry.reason)
    return found


def beginning_of_error(text: str | None) -> dict[str, object] | None:
    """Read type and message of an error of which only the beginning was fetched."""
    if not text:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        found = {
            name: part.split('"', 1)[0]
            for name in ("type", "message")
            for part in [_after(text, f'"{name}":')]
            if part
        }
        return dict(found) or None
    return value if isinstance(value, dict) else None


def _after(text: str, mark: str) -> str:
    _, found, rest = text.partition(mark)
    return rest.lstrip().removeprefix('"')[:300] if found else ""
