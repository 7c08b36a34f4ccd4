"""Pause, resume and terminate instances, retry their rollbacks, and accept that their code has changed.

Each is one transaction, within the caller's if there is one: lock the instance's row, decide by what it says,
write, leave a row in the audit trail, notify. Lock order: instance, steps, attempts. A row that a worker
holds keeps its `wake_at`, the end of the lease: any other value would let a second worker claim it.
"""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection, transaction
from django.db.models import F

from engine.declare.registry import workflows
from engine.models import Attempt, Instance, Step
from engine.models.instance import InstanceQuerySet
from engine.models.step import StepQuerySet
from engine.steer import audit, notify, relations, transitions
from engine.steer.clock import ClockTimestamp
from engine.values import between_steps
from engine.values.errors import (
    CodeChangedError,
    InstanceFinishedError,
    InstanceNotFoundError,
    RollbackNotFailedError,
)
from engine.values.retry import RETRIED_AFTER
from engine.values.states import Action, AttemptPhase, InstanceStatus, RollbackState, allows


def pause(instance: Instance, *, by: object = None, reason: str = "") -> Instance:
    """Stop driving the instance: at once, or as soon as the bodies that a worker runs of it are recorded.

    Does nothing where there is nothing to pause. Returns the instance as it is then.
    """
    return _act(instance, Action.PAUSE, _pause, audit.Cause.of(by, reason))


def resume(instance: Instance, *, by: object = None, reason: str = "") -> Instance:
    """Go on after a pause, or withdraw one that is not reached yet.

    Sleeps, back-offs and the timeouts of waits are shifted by the time paused; moments are not. Does nothing
    where there is nothing to resume. Returns the instance as it is then.
    """
    return _act(instance, Action.RESUME, _resume, audit.Cause.of(by, reason))


def terminate(instance: Instance, *, rollback: bool = False, by: object = None, reason: str = "") -> Instance:
    """End the instance now, and the children that it waits for. A body that still runs is cancelled and its result
    refused.

    With `rollback`, what its steps did is undone first, as after an error; it is terminated when that is over, and at
    once if there is nothing to undo. So is each of those children, side by side. Where the rollbacks run already they
    go on; without `rollback` they are cut off, and have failed. Raises InstanceFinishedError if it has ended already.
    """
    change = _roll_back_family if rollback else _terminate
    data = {"rollback": True} if rollback else None
    return _act(instance, Action.TERMINATE, change, audit.Cause.of(by, reason), data)


def retry_rollback(instance: Instance, *, by: object = None, reason: str = "") -> Instance:
    """Go on with the rollbacks from the one that failed, with all of its attempts anew; then end as before.

    Raises RollbackNotFailedError where none has failed. Returns the instance as it is then.
    """
    between_steps.refuse("retry_rollback")
    cause = audit.Cause.of(by, reason)
    with transaction.atomic():
        row = lock(instance)
        if not allows(Action.RETRY_ROLLBACK, row.status) or row.rollback != RollbackState.FAILED:
            raise RollbackNotFailedError(row.workflow, row.id, row.status, row.rollback)
        after = _retry_rollback(row)
        audit.write(Action.RETRY_ROLLBACK, [row], cause, before=row.status, after=after)
        return instance.refresh()


def accept_code(instance: Instance, *, by: object = None, reason: str = "") -> Instance:
    """Let the instance go on under the code of its workflow as it is now; resume it if the change had paused it.

    Does nothing where it goes on under that code anyway. Raises InstanceFinishedError if it has ended, and
    UnknownWorkflowError where no such workflow is declared. Returns the instance as it is then.
    """
    between_steps.refuse("accept_code")
    cause = audit.Cause.of(by, reason)
    current = workflows[instance.workflow].fingerprint
    with transaction.atomic():
        row = lock(instance)
        if not allows(Action.ACCEPT_CODE, row.status):
            raise InstanceFinishedError(row.workflow, row.id, row.status, "accepting other code")
        is_paused = row.status == InstanceStatus.PAUSED and _is_paused_by_code(row)
        if is_paused or row.code != current:
            Instance.objects.filter(key=row.key).update(code=current)
            after = _resume(row) if is_paused else row.status
            codes = {"recorded": row.code, "current": current}
            audit.write(Action.ACCEPT_CODE, [row], cause, before=row.status, after=after, data=codes)
            notify.tell(changed=[row.key])
        return instance.refresh()


def lock(instance: Instance) -> Instance:
    """Lock the instance's row until the transaction ends, and read where it stands, without its values."""
    row = _locked().filter(key=instance.key).first()
    if row is None:
        raise InstanceNotFoundError(instance.workflow, instance.id)
    return row


def _locked() -> InstanceQuerySet:
    return Instance.objects.select_for_update(no_key=True).defer("params", "output", "error")


def _act(
    instance: Instance,
    action: Action,
    change: Callable[[Instance], InstanceStatus],
    cause: audit.Cause,
    data: dict[str, bool] | None = None,
) -> Instance:
    between_steps.refuse(action)
    with transaction.atomic():
        row = lock(instance)
        if allows(action, row.status):
            after = change(row)
            audit.write(action, [row], cause, before=row.status, after=after, data=data)
        elif row.is_finished and action is Action.TERMINATE:
            raise InstanceFinishedError(row.workflow, row.id, row.status, "terminating it")
        # Still locked, so that the answer is what this call did and not what a worker did since.
        return instance.refresh()


def _pause(row: Instance) -> InstanceStatus:
    if row.status == InstanceStatus.RUNNING:
        return _update(row, InstanceStatus.WAITING_FOR_PAUSE)
    return _write(row, transitions.PAUSE, InstanceStatus.PAUSED)


def _resume(row: Instance) -> InstanceStatus:
    if row.status == InstanceStatus.WAITING_FOR_PAUSE:
        return _update(row, InstanceStatus.RUNNING)
    return _write(row, transitions.RESUME, InstanceStatus.QUEUED)


def _is_paused_by_code(row: Instance) -> bool:
    return isinstance(row.pause_reason, dict) and row.pause_reason.get("type") == CodeChangedError.__name__


def _terminate(row: Instance) -> InstanceStatus:
    after = end(row)
    relations.settle(row.key)
    return after


def end(row: Instance) -> InstanceStatus:
    """Write that the locked instance is terminated. What that means for others is left to the caller."""
    return _write(row, transitions.END, InstanceStatus.TERMINATED)


# Rollbacks


def _roll_back_family(row: Instance) -> InstanceStatus:
    """Roll back the instance, and before it those that would end with it as they are."""
    children = list(_locked().filter(key__in=relations.tied_to(row.key)).open().order_by("key"))
    for child in reversed(children):
        cause = audit.Cause.of(None, f"Its parent {row.workflow}/{row.id} is rolled back.")
        after = _roll_back(child)
        audit.write(
            Action.TERMINATE, [child], cause, before=child.status, after=after, data={"rollback": True}
        )
    return _roll_back(row)


def _roll_back(row: Instance) -> InstanceStatus:
    """Let a worker run the rollbacks, and end the instance then; only a worker has the functions."""
    is_held = row.owner is not None
    if row.rollback == RollbackState.RUNNING:
        is_paused = row.status in (InstanceStatus.PAUSED, InstanceStatus.WAITING_FOR_PAUSE)
        return _resume(row) if is_paused else InstanceStatus(row.status)
    if not _has_rollbacks(row):
        return _terminate(row)
    telling: dict[str, object] = {
        "rollback": RollbackState.RUNNING,
        "ends_as": InstanceStatus.TERMINATED,
        "pause_reason": None,
    }
    if is_held:  # its worker keeps it, and is told
        return _update(row, InstanceStatus.RUNNING, **telling)
    after = _update(
        row, InstanceStatus.QUEUED, wake_at=ClockTimestamp(), waiting_for="", paused_at=None, **telling
    )
    notify.wake()
    return after


def _has_rollbacks(row: Instance) -> bool:
    """Tell whether any step was begun that was recorded with a rollback."""
    return _steps(row).begun_with_rollback().exists()


def _retry_rollback(row: Instance) -> InstanceStatus:
    for step in _steps(row).filter(rollback=RollbackState.FAILED):
        made = Attempt.objects.filter(
            instance_id=row.key, generation=row.generation, step_seq=step.seq, phase=AttemptPhase.ROLLBACK
        )
        step.options["rollback"][RETRIED_AFTER] = made.count()
        _steps(row).filter(seq=step.seq).update(rollback=RollbackState.RUNNING, options=step.options)
    after = _update(
        row,
        InstanceStatus.QUEUED,
        rollback=RollbackState.RUNNING,
        ends_as=row.status,
        pause_reason=None,
        wake_at=ClockTimestamp(),
        finished_at=None,
    )
    notify.wake()
    return after


def _steps(row: Instance) -> StepQuerySet:
    return Step.objects.filter(instance_id=row.key, generation=row.generation)


def _write(row: Instance, transition: str, after: InstanceStatus) -> InstanceStatus:
    """Write one of `engine.steer.transitions` of the locked row. Return the new status."""
    with connection.cursor() as cursor:
        cursor.execute(transition, {"key": row.key})
        [_] = cursor.fetchall()
    return after


def _update(row: Instance, status: InstanceStatus, **values: object) -> InstanceStatus:
    """Write the locked row, and tell the worker that held it and the Studio. Returns the new status."""
    Instance.objects.filter(key=row.key).update(status=status, signals=F("signals") + 1, **values)
    notify.tell(worker_ids=[] if row.owner is None else [row.owner], changed=[row.key])
    return status
