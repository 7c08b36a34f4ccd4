"""Restart instances: from the start, or from a step (docs/guarantees.md, 14).

In one transaction, the current generation is closed and kept unchanged, and the next one is queued with copies of the
steps that it keeps. A worker that still holds the instance is fenced. Lock order as in `engine.steer.lifecycle`:
instance, steps, attempts, events.
"""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction

from engine.declare.registry import workflows
from engine.models import Event, Instance, Step, Waiter
from engine.steer import audit, notify, relations, sql
from engine.steer.lifecycle import end, lock
from engine.steer.restart_plan import PlannedStep, RestartPlan, Split, split
from engine.values import between_steps
from engine.values.errors import InstanceNotFoundError
from engine.values.identity import REQUEST_TYPE
from engine.values.states import Action, InstanceStatus

__all__ = ["PlannedStep", "RestartPlan", "preview", "restart"]


def restart(
    instance: Instance,
    from_step: str | None = None,
    count: int = 1,
    kind: str = "do",
    *,
    by: object = None,
    reason: str = "",
) -> Instance:
    """Start a new generation of the instance, whatever its status. Earlier generations are kept unchanged.

    With `from_step` (a top-level step, by name, count and kind), it keeps the outcomes of the steps that started
    before that one, and runs it and all later ones again; events consumed by their waits go back to the buffer.
    Without `from_step`, it keeps nothing, and buffered events are dropped. Raises StepNotFoundError, RestartError if a
    step that it would keep was rolled back, and InstanceNotFoundError; then nothing is changed. Returns the instance in
    its new state.
    """
    between_steps.refuse("restart")
    cause = audit.Cause.of(by, reason)
    target = None if from_step is None else (from_step, count, kind)
    with transaction.atomic():
        row = lock(instance)
        steps = split(row, target)
        if steps.refusal is not None:
            raise steps.refusal
        before = row.status
        _close(row)
        _begin(row, steps, drops=target is None)
        data: dict[str, Any] = {"generation": row.generation + 1, "from_step": from_step}
        if target is not None:
            data |= {"count": count, "kind": kind}
        data["kept"] = len(steps.keeps)
        audit.write(Action.RESTART, [row], cause, before=before, after=InstanceStatus.QUEUED, data=data)
        return instance.refresh()


def preview(
    instance: Instance, from_step: str | None = None, count: int = 1, kind: str = "do"
) -> RestartPlan:
    """Return what `restart` would do now. Raises StepNotFoundError and InstanceNotFoundError."""
    target = None if from_step is None else (from_step, count, kind)
    row = Instance.objects.defer("params", "output", "error").filter(key=instance.key).first()
    if row is None:
        raise InstanceNotFoundError(instance.workflow, instance.id)
    steps = split(row, target)
    return RestartPlan(
        generation=row.generation + 1,
        keeps=steps.keeps,
        runs_again=steps.runs_again,
        returned_events=0 if target is None else _consumed(row, steps),
        dropped_events=_dropped(row, drops=target is None),
        ended_children=_ask(sql.CHILDREN_THAT_END, key=row.key, generation=row.generation),
        refused="" if steps.refusal is None else str(steps.refusal),
    )


def _close(row: Instance) -> None:
    """Record the current generation as ended. One that is still open ends here."""
    if not row.is_finished:
        end(row)
    Waiter.objects.filter(waiter_id=row.key).delete()
    _ask(sql.KEEP_GENERATION, key=row.key)


def _begin(row: Instance, steps: Split, *, drops: bool) -> None:
    which = {"key": row.key, "generation": row.generation}
    if steps.seqs:
        _ask(sql.KEEP_STEPS, **which, seqs=steps.seqs)
    _ask(sql.DROP_EVENTS, key=row.key, answers=REQUEST_TYPE, all=drops)
    if not drops:
        _ask(sql.RETURN_EVENTS, **which, seqs=steps.discarded)
    workflow = workflows.get(row.workflow)
    _ask(
        sql.NEXT_GENERATION,
        key=row.key,
        keeps=bool(steps.seqs),
        code=None if workflow is None else workflow.fingerprint,
        timeout=None if workflow is None else workflow.timeout,
    )
    relations.settle(row.key)
    notify.tell(wake=True, changed=[row.key])


def _dropped(row: Instance, *, drops: bool) -> int:
    buffered = Event.objects.filter(instance_id=row.key, state="buffered")
    return (buffered if drops else buffered.filter(type__startswith=REQUEST_TYPE)).count()


def _consumed(row: Instance, steps: Split) -> int:
    waits = Step.objects.filter(
        instance_id=row.key, generation=row.generation, seq__in=steps.discarded, kind="event"
    )
    taken = {(step.kept_from or step.generation, step.seq) for step in waits}
    rows = Event.objects.filter(instance_id=row.key, state="consumed", consumed_by__in=steps.discarded)
    return sum(one in taken for one in rows.values_list("consumed_generation", "consumed_by"))


def _ask(statement: str, **values: Any) -> int:
    """Execute a statement. Return the number that it selects, or else how many rows it wrote."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.fetchone()[0]) if cursor.description else cursor.rowcount
