"""Read the state of instances with a fixed number of queries for any number of them, without their values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import F, QuerySet, TextField
from django.db.models.functions import Cast, Left

from engine.models import Attempt, Audit, Instance, PauseRow, Step, Worker
from engine.models.instance import InstanceQuerySet
from engine.status.among import ATTEMPTS, among
from engine.status.errors import beginning_of_error, error_line
from engine.status.facts import Capacity, Hold, LastAction, OpenStep, Rollback, Servers, StatusFacts
from engine.status.prepared import CLOCK, Call, Prepared, together
from engine.status.servers import ALIVE, capacity_of, servers_of
from engine.status.steps import retried_after, rollback_of
from engine.steer.requests import OPEN_SQL, OPEN_VALUES
from engine.values.identity import TOP
from engine.values.states import Action, AttemptPhase, AttemptStatus

MOST_OPEN = 2_000  # steps
MOST_ATTEMPTS = 500
OPEN = ["running", "waiting"]
# The ORM can say it, but takes four times as long to.
_COUNT_COMPLETE = """
SELECT count(*) FROM engine_step
 WHERE instance_id = %(key)s AND generation = %(generation)s AND status = 'complete' AND parent = %(top)s
"""
_ASKING = f"""
SELECT r.instance_id, r.generation, r.seq
  FROM (SELECT * FROM engine_open_request WHERE instance_id = ANY (%(keys)s) OFFSET 0) AS r
{OPEN_SQL}
"""  # noqa: S608
UNCOUNTED = [AttemptStatus.LOST, AttemptStatus.CANCELLED]


@dataclass(frozen=True, slots=True)
class Present:
    """The time by the database's clock, and the workers alive and the pause then; none if they do not matter."""

    now: datetime
    living: Sequence[Worker] = ()
    pauses: Sequence[PauseRow] = ()  # of the workflow


def calls_of_present(instance: Instance) -> list[Call[Any]]:
    """Return the queries whose results make a `Present`.

    Nothing that its workers do matters to an instance that has finished, so they are not read.
    """
    return [CLOCK] if instance.is_finished else [CLOCK, ALIVE.call(), _PAUSE.call(instance.workflow)]


def present_of(
    clock: Sequence[datetime], living: Sequence[Worker] = (), pauses: Sequence[PauseRow] = ()
) -> Present:
    """Return what the queries of `calls_of_present` found."""
    return Present(clock[0], living, pauses)


def _pause(workflow: str) -> QuerySet[PauseRow]:
    return PauseRow.objects.filter(workflow=workflow)


_PAUSE = Prepared(_pause)


def facts_of(
    instance: Instance, steps: Sequence[Step] | None = None, present: Present | None = None
) -> StatusFacts:
    """Return all facts of one instance.

    `steps` are all of its generation, in their order, if they were read already, as `present` may have been.
    """
    if present is None:
        present = present_of(*together(*calls_of_present(instance)))
    return _facts(
        instance,
        now=present.now,
        servers=servers_of([instance.workflow], present.living)[instance.workflow],
        capacity=None if instance.is_finished else capacity_of([instance.workflow]).get(instance.workflow),
        hold=_hold(instance, {row.workflow: row for row in present.pauses}),
        steps=still_open(instance, steps),
        last_action=last_actions([instance]).get(instance.key),
        error=instance.error if isinstance(instance.error, dict) else None,
        pause_reason=instance.pause_reason,
        began_at=starts_of_generations([instance])[instance.key],
        steps_complete=steps_complete(instance) if steps is None else _count_complete(steps),
        rollback=rollback_of(instance),
    )


def facts_by_key(instances: Sequence[Instance]) -> dict[int, StatusFacts]:
    """Return the facts shown in a list, by key. Instances read by `without_values` have enough columns."""
    rows = open_rows(instances)
    attempts = attempts_at(step for found in rows.values() for step in found)
    names = {instance.workflow for instance in instances}
    servers, capacity = servers_of(names), capacity_of(names)
    open_ones = {instance.workflow for instance in instances if not instance.is_finished}
    pauses = {row.workflow: row for row in PauseRow.objects.filter(workflow__in=open_ones)}
    actions, began = last_actions(instances), starts_of_generations(instances)
    now = database_now()
    asked = asking(instance.key for instance in instances if not instance.is_finished)
    return {
        instance.key: _facts(
            instance,
            now=now,
            servers=servers[instance.workflow],
            capacity=capacity.get(instance.workflow),
            hold=_hold(instance, pauses),
            steps=open_steps(rows[instance.key], attempts, asked),
            last_action=actions.get(instance.key),
            error=beginning_of_error(getattr(instance, "error_text", None)),
            pause_reason=beginning_of_error(getattr(instance, "pause_reason_text", None)),
            began_at=began[instance.key],
        )
        for instance in instances
    }


def without_values() -> InstanceQuerySet:
    """Return the query without params and outputs, and with only the beginning of errors."""
    return Instance.objects.defer("params", "output", "error", "pause_reason", "tags").annotate(
        error_text=Left(Cast("error", TextField()), 4_000),
        pause_reason_text=Left(Cast("pause_reason", TextField()), 4_000),
    )


def _facts(
    instance: Instance,
    *,
    now: datetime,
    servers: Servers,
    capacity: Capacity | None,
    hold: Hold | None,
    steps: Sequence[OpenStep],
    last_action: LastAction | None,
    error: dict[str, object] | None,
    pause_reason: dict[str, object] | None,
    began_at: datetime,
    steps_complete: int = 0,
    rollback: Rollback | None = None,
) -> StatusFacts:
    """Combine what was read."""
    return StatusFacts(
        status=instance.status,
        waiting_for=instance.waiting_for,
        workflow=instance.workflow,
        now=now,
        created_at=instance.created_at,
        began_at=began_at,
        finished_at=instance.finished_at,
        paused_at=instance.paused_at,
        wake_at=instance.wake_at,
        starts_at=None if instance.started_at else instance.starts_at,
        servers=servers,
        capacity=capacity,
        hold=hold,
        steps=steps,
        steps_complete=steps_complete,
        last_action=last_action,
        error=error,
        pause_reason=pause_reason,
        rollback=rollback or (Rollback(instance.rollback) if instance.rollback else None),
    )


def _hold(instance: Instance, pauses: Mapping[str, PauseRow]) -> Hold | None:
    """Return what holds an instance; None if it has ended or was released."""
    row = pauses.get(instance.workflow)
    if row is None or instance.is_finished or instance.released_in == row.key:
        return None
    return Hold(row.paused_by, row.paused_at, row.reason)


def starts_of_generations(instances: Sequence[Instance]) -> dict[int, datetime]:
    """Return when the current generation of each began: at its start, or at its last restart."""
    again = [instance.key for instance in instances if instance.generation > 1]
    restarted: dict[int | None, datetime] = dict(_restarts_of(again)) if again else {}
    return {
        instance.key: restarted.get(instance.key) or instance.started_at or instance.created_at
        for instance in instances
    }


def _restarts_of(keys: Sequence[int]) -> Iterable[tuple[int | None, datetime]]:
    trail = Audit.objects.filter(instance_key__in=keys, verb=Action.RESTART, outcome="done")
    return trail.order_by("instance_key", "-key").distinct("instance_key").values_list("instance_key", "at")


def database_now() -> datetime:
    (now,) = CLOCK.run()
    return now


def still_open(instance: Instance, steps: Sequence[Step] | None = None) -> list[OpenStep]:
    """Return the open steps of an instance. `steps` are those of `facts_of`."""
    if instance.is_finished:
        return []
    if steps is None:
        rows = _OPEN.rows(instance.key, instance.generation)
    else:
        rows = [step for step in steps if step.status in OPEN][:MOST_OPEN]
    asks = any(step.kind == "request" for step in rows)
    return open_steps(rows, attempts_at(rows), asking([instance.key]) if asks else frozenset())


def _open(key: int, generation: int) -> QuerySet[Step]:
    rows = Step.objects.filter(instance_id=key, generation=generation, status__in=OPEN)
    return rows.defer("output").order_by("seq")[:MOST_OPEN]


_OPEN = Prepared(_open)


def steps_complete(instance: Instance) -> int:
    """Count the complete steps at the top."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_COMPLETE, {"key": instance.key, "generation": instance.generation, "top": TOP})
        count: int = cursor.fetchone()[0]
        return count


def _count_complete(steps: Iterable[Step]) -> int:
    return sum(step.status == "complete" and step.parent == TOP for step in steps)


def open_rows(instances: Sequence[Instance]) -> dict[int, list[Step]]:
    """Return the query for the open steps of several instances."""
    found: dict[int, list[Step]] = {instance.key: [] for instance in instances}
    live = [instance.key for instance in instances if not instance.is_finished]
    if not live:
        return found
    steps = Step.objects.filter(
        instance_id__in=live, generation=F("instance__generation"), status__in=OPEN
    ).defer("output")
    for step in steps.order_by("instance_id", "seq")[:MOST_OPEN]:
        found[step.instance_id].append(step)
    return found


@dataclass(frozen=True, slots=True)
class Attempts:
    """The latest attempt of each open step, and how many do not count, by the step's primary key."""

    last: Mapping[tuple[int, int, int], Attempt]
    uncounted: Mapping[tuple[int, int, int], int]


def attempts_at(steps: Iterable[Step]) -> Attempts:
    """Return who runs each of these steps or why it failed, and how many attempts were lost or drained."""
    tried = [one for one in steps if one.attempts][:MOST_ATTEMPTS]
    if not tried:
        return Attempts({}, {})
    wanted = [(one.instance_id, one.generation, one.seq, one.attempts) for one in tried]
    last = Attempt.objects.filter(among(ATTEMPTS, wanted), phase=AttemptPhase.DO)
    again = [one for one in tried if one.attempts > 1]
    rows = Attempt.objects.filter(
        instance_id__in={one.instance_id for one in again},
        generation__in={one.generation for one in again},
        step_seq__in={one.seq for one in again},
        phase=AttemptPhase.DO,
        status__in=UNCOUNTED,
    ).values_list("instance_id", "generation", "step_seq", "number")  # and some of other steps, not used
    before = {(one.instance_id, one.generation, one.seq): retried_after(one) for one in again}
    uncounted = Counter(before)
    for key, generation, seq, number in rows if again else ():
        which = key, generation, seq
        uncounted[which] += number > before.get(which, 0)
    return Attempts(
        {(attempt.instance_id, attempt.generation, attempt.step_seq): attempt for attempt in last}, uncounted
    )


def asking(keys: Iterable[int]) -> set[tuple[int, int, int]]:
    """Return the primary keys of the steps of these instances that wait for an answer."""
    wanted = [*set(keys)]
    if not wanted:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(_ASKING, OPEN_VALUES | {"keys": wanted})
        return set(cursor.fetchall())


def open_steps(steps: Sequence[Step], attempts: Attempts, asking: Container[object]) -> list[OpenStep]:
    """Return the facts of the open steps of an instance.

    An open map is represented by its items; an open parallel represents its branches.
    """
    maps = {step.seq for step in steps if step.kind == "map"}
    parallels = {step.seq for step in steps if step.kind == "parallel"}
    inside = Counter(step.parent for step in steps)
    return [
        _open_step(
            step,
            f"{step.name}[{step.count - 1}]" if step.parent in maps else str(step),
            attempts,
            is_asking=step.pk in asking,
            left=inside[step.seq],
        )
        for step in steps
        if step.parent not in parallels and not (step.seq in maps and inside[step.seq])
    ]


def _open_step(step: Step, name: str, attempts: Attempts, *, is_asking: bool, left: int) -> OpenStep:
    which = step.instance_id, step.generation, step.seq
    attempt = attempts.last.get(which)
    options: Any = step.options if isinstance(step.options, dict) else {}
    most = options.get("max_attempts")
    # Between two attempts the worker may still hold the instance: the end of the attempt shows that it is over.
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
        uncounted=attempts.uncounted.get(which, 0),
        event_types=tuple(step.event_types or ()),
        worker=attempt.worker if attempt else "",
        error=error_line(step.error or (attempt.error if attempt else None)),
        is_exhausted=is_waiting and step.error is not None,
        is_asking=is_asking,
        asked_of=tuple(options.get("assignees") or ()) if is_asking else (),
        message=str(options.get("message", "")) if is_asking else "",
        relative=str(options.get("id", "")) if step.kind == "child" else "",
        is_child=options.get("operation") != "wait_for_instance",
        branches=int(options.get("branches", 0)) if step.kind == "parallel" else 0,
        left=left if step.kind == "parallel" else 0,
    )


def last_actions(instances: Sequence[Instance]) -> dict[int, LastAction]:
    """Return who last paused or terminated each of them in its current generation."""
    verbs = {"paused": "pause", "waiting_for_pause": "pause", "terminated": "terminate"}
    wanted = {instance.key: verbs[instance.status] for instance in instances if instance.status in verbs}
    found: dict[int, LastAction] = {}
    if not wanted:
        return found
    trail = Audit.objects.filter(
        instance_key__in=wanted, verb__in={*wanted.values(), Action.RESTART}, outcome="done"
    )
    for entry in trail.order_by("key"):
        if entry.instance_key is None:
            continue
        if entry.verb == Action.RESTART:
            found.pop(entry.instance_key, None)
        elif wanted[entry.instance_key] == entry.verb:
            found[entry.instance_key] = LastAction(entry.actor, entry.at, entry.reason)
    return found
