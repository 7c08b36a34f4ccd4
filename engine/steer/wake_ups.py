"""End sleeps and back-offs early: `retry_now` and `wake_now`.

The new time is written into the rows of the steps, so that it survives the worker. A parked instance becomes due. A
worker that holds the instance is signalled and reads the rows; the `wake_at` of a held instance is its lease and stays.
What the worker records later of such a step is its next attempt or its outcome, which replaces the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection, transaction
from django.db.models import Q

from engine.models import Instance, Step
from engine.models.step import StepQuerySet
from engine.steer import audit, transitions
from engine.steer.clock import ClockTimestamp
from engine.steer.lifecycle import lock
from engine.values import between_steps
from engine.values.errors import InstancePausedError, NothingToRetryError, NothingToWakeError
from engine.values.states import (
    Action,
    InstanceStatus,
    RollbackState,
    StepKind,
    StepStatus,
    WaitingFor,
    allows,
)

NAMED = 20  # steps in an entry of the audit trail

_PAUSED = (InstanceStatus.PAUSED, InstanceStatus.WAITING_FOR_PAUSE)


def retry_now(instance: Instance, *, by: object = None, reason: str = "") -> Instance:
    """End the back-off of the steps that wait for their next attempt: it starts now.

    Only the waiting ends: attempts, options and idempotency keys stay. Also of rollbacks and nested steps, not of
    children. Raises NothingToRetryError if no step backs off, and InstancePausedError. Returns the instance in its new
    state.
    """
    between_steps.refuse("retry_now")
    cause = audit.Cause.of(by, reason)
    with transaction.atomic():
        row = _locked(instance, "retry")
        found = _back_offs(row) if allows(Action.RETRY_NOW, row.status) else []
        if not found:
            raise NothingToRetryError(row.workflow, row.id, row.status, _doing(row))
        return _wake(instance, row, Action.RETRY_NOW, found, cause)


def wake_now(
    instance: Instance, step: str | None = None, count: int = 1, *, by: object = None, reason: str = ""
) -> Instance:
    """End the sleeps of the instance now: all that are open, or the one of this name and count.

    Raises NothingToWakeError if there is none, and InstancePausedError. Returns the instance in its new state.
    """
    between_steps.refuse("wake_now")
    cause = audit.Cause.of(by, reason)
    with transaction.atomic():
        row = _locked(instance, "wake")
        sleeping = _sleeps(row) if allows(Action.WAKE_NOW, row.status) else []
        found = [one for one in sleeping if step is None or (one.name, one.count) == (step, count)]
        if not found:
            named = None if step is None else f'"{step}"' if count == 1 else f'"{step}" #{count}'
            doing = _sleeping_at(sleeping) if sleeping else _doing(row)
            raise NothingToWakeError(row.workflow, row.id, row.status, doing, named)
        return _wake(instance, row, Action.WAKE_NOW, found, cause)


def _locked(instance: Instance, action: str) -> Instance:
    row = lock(instance)
    if row.status in _PAUSED:
        raise InstancePausedError(row.workflow, row.id, row.status, action)
    return row


def _back_offs(row: Instance) -> list[Step]:
    waits = Q(status=StepStatus.WAITING) | Q(rollback=RollbackState.RUNNING)
    return list(_waiting(row).filter(waits, kind=StepKind.DO, wake_at__gt=ClockTimestamp()))


def _sleeps(row: Instance) -> list[Step]:
    return list(
        _waiting(row).filter(status=StepStatus.WAITING, kind=StepKind.SLEEP, wake_at__gt=ClockTimestamp())
    )


def _waiting(row: Instance) -> StepQuerySet:
    steps = Step.objects.filter(instance_id=row.key, generation=row.generation)
    return steps.order_by("seq").only("seq", "kind", "name", "count")


def _wake(
    instance: Instance, row: Instance, action: Action, steps: Sequence[Step], cause: audit.Cause
) -> Instance:
    seqs = [step.seq for step in steps]
    with connection.cursor() as cursor:
        cursor.execute(transitions.WAKE, {"key": row.key, "generation": row.generation, "seqs": seqs})
        [_] = cursor.fetchall()
    data = {"steps": [str(step) for step in steps[:NAMED]], "total": len(steps)}
    audit.write(action, [row], cause, before=row.status, after=row.status, data=data)
    return instance.refresh()


def _doing(row: Instance) -> str:
    """Return what the instance does, in a clause."""
    if row.status != InstanceStatus.WAITING:
        return f"it is {row.status}"
    if row.waiting_for == WaitingFor.RETRY:
        return "its next attempt is due and starts now"
    kinds = {
        WaitingFor.SLEEP: [StepKind.SLEEP],
        WaitingFor.EVENT: [StepKind.EVENT, StepKind.REQUEST],
        WaitingFor.CHILD: [StepKind.CHILD, StepKind.PARALLEL],
    }[WaitingFor(row.waiting_for)]
    step = _waiting(row).filter(status=StepStatus.WAITING, kind__in=kinds).only("event_types").first()
    if row.waiting_for == WaitingFor.SLEEP:
        return "it is sleeping" if step is None else f'it is sleeping at "{step}"'
    if step is None:
        return "it waits"
    what = {
        StepKind.EVENT: f"for event {_types(step)}",
        StepKind.REQUEST: "for the answer to request",
    }.get(StepKind(step.kind), "for another instance")
    return f'it waits {what} at "{step}"' if step.kind != StepKind.REQUEST else f'it waits {what} "{step}"'


def _types(step: Step) -> str:
    return " or ".join(f'"{one}"' for one in step.event_types or [])


def _sleeping_at(steps: Sequence[Step]) -> str:
    named = ", ".join(f'"{step}"' for step in steps[:NAMED])
    return f"it is sleeping at {named}"
