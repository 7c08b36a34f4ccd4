"""Read where instances stand, with a fixed number of queries for any number of them, and without their values."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import F, QuerySet, TextField
from django.db.models.functions import Cast, Left

from engine.identity import TOP
from engine.models import Attempt, Audit, Instance, Step
from engine.requests import open_requests
from engine.standing.errors import beginning_of_error, error_line
from engine.standing.facts import Deed, OpenStep, Places, Rollback, Servers, Situation
from engine.standing.places import places_of
from engine.standing.rollbacks import rollback_of
from engine.standing.servers import servers_of
from engine.states import Action

MOST_OPEN = 2_000  # steps
MOST_ATTEMPTS = 500


def situation_of(instance: Instance) -> Situation:
    """Gather all that is to be known of one instance."""
    return situation(
        instance,
        now=database_now(),
        servers=servers_of([instance.workflow])[instance.workflow],
        places=places_of([instance.workflow]).get(instance.workflow),
        steps=still_open(instance),
        deed=last_deeds([instance]).get(instance.key),
        error=instance.error if isinstance(instance.error, dict) else None,
        steps_complete=steps_complete(instance),
        rollback=rollback_of(instance),
    )


def situations(instances: Sequence[Instance]) -> dict[int, Situation]:
    """Gather what a line of a list says of each instance; `without_values` reads enough of them."""
    rows = open_rows(instances)
    attempts = last_attempts(step for found in rows.values() for step in found)
    names = {instance.workflow for instance in instances}
    servers, places = servers_of(names), places_of(names)
    deeds = last_deeds(instances)
    now = database_now()
    asked = asking(instance.key for instance in instances if not instance.is_finished)
    return {
        instance.key: situation(
            instance,
            now=now,
            servers=servers[instance.workflow],
            places=places.get(instance.workflow),
            steps=open_steps(rows[instance.key], attempts, asked),
            deed=deeds.get(instance.key),
            error=beginning_of_error(getattr(instance, "error_text", None)),
        )
        for instance in instances
    }


def without_values() -> QuerySet[Instance]:
    """Read instances without their params and outputs, and of an error its beginning only."""
    return Instance.objects.defer("params", "output", "error", "tags").annotate(
        error_text=Left(Cast("error", TextField()), 4_000)
    )


def situation(
    instance: Instance,
    *,
    now: datetime,
    servers: Servers,
    places: Places | None,
    steps: Sequence[OpenStep],
    deed: Deed | None,
    error: dict[str, object] | None,
    steps_complete: int = 0,
    rollback: Rollback | None = None,
) -> Situation:
    """Put together what was gathered."""
    return Situation(
        status=instance.status,
        waiting_for=instance.waiting_for,
        workflow=instance.workflow,
        now=now,
        created_at=instance.created_at,
        started_at=instance.started_at,
        finished_at=instance.finished_at,
        paused_at=instance.paused_at,
        wake_at=instance.wake_at,
        servers=servers,
        places=places,
        steps=steps,
        steps_complete=steps_complete,
        deed=deed,
        error=error,
        rollback=rollback or (Rollback(instance.rollback) if instance.rollback else None),
    )


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
        return now


def still_open(instance: Instance) -> list[OpenStep]:
    """Read the steps of an instance that have not ended."""
    steps = open_rows([instance])[instance.key]
    attempts = last_attempts(steps)
    asks = any(step.kind == "request" for step in steps)
    return open_steps(steps, attempts, asking([instance.key]) if asks else frozenset())


def steps_complete(instance: Instance) -> int:
    rows = Step.objects.filter(instance_id=instance.key, generation=instance.generation)
    return rows.filter(status="complete", parent=TOP).count()


def open_rows(instances: Sequence[Instance]) -> dict[int, list[Step]]:
    """Find the steps that have begun and not ended, of several instances at once."""
    found: dict[int, list[Step]] = {instance.key: [] for instance in instances}
    live = [instance.key for instance in instances if not instance.is_finished]
    steps = Step.objects.filter(
        instance_id__in=live, generation=F("instance__generation"), status__in=["running", "waiting"]
    ).defer("output", "error")
    for step in steps.order_by("instance_id", "seq")[:MOST_OPEN]:
        found[step.instance_id].append(step)
    return found


def last_attempts(steps: Iterable[Step]) -> dict[tuple[int, int], Attempt]:
    """Find the latest attempt of each of these steps: who runs it, or why it failed."""
    wanted = [(one.instance_id, one.generation, one.seq, "do", one.attempts) for one in steps if one.attempts]
    attempts = Attempt.objects.filter(pk__in=wanted[:MOST_ATTEMPTS]) if wanted else ()
    return {(attempt.instance_id, attempt.step_seq): attempt for attempt in attempts}


def asking(keys: Iterable[int]) -> set[tuple[int, int, int]]:
    """Find the steps of these instances that wait for an answer, by their primary keys."""
    rows = open_requests().filter(instance_id__in=set(keys))
    return set(rows.values_list("instance_id", "generation", "seq"))


def open_steps(
    steps: Sequence[Step], attempts: Mapping[tuple[int, int], Attempt], asking: Container[object]
) -> list[OpenStep]:
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


def _open_step(step: Step, name: str, attempt: Attempt | None, is_asking: bool) -> OpenStep:
    options: Any = step.options if isinstance(step.options, dict) else {}
    most = options.get("max_attempts")
    # Between two attempts the worker may still hold the instance: the attempt's own end tells it.
    is_waiting = step.status == "waiting"
    return OpenStep(
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


def last_deeds(instances: Sequence[Instance]) -> dict[int, Deed]:
    """Find who paused or terminated each of them last, in its present generation."""
    verbs = {"paused": "pause", "waiting_for_pause": "pause", "terminated": "terminate"}
    wanted = {instance.key: verbs[instance.status] for instance in instances if instance.status in verbs}
    found: dict[int, Deed] = {}
    trail = Audit.objects.filter(
        instance_key__in=wanted, verb__in={*wanted.values(), Action.RESTART}, outcome="done"
    )
    for entry in trail.order_by("key") if wanted else ():
        if entry.instance_key is None:
            continue
        if entry.verb == Action.RESTART:
            found.pop(entry.instance_key, None)
        elif wanted[entry.instance_key] == entry.verb:
            found[entry.instance_key] = Deed(entry.actor, entry.at, entry.reason)
    return found
