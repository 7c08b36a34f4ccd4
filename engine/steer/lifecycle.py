"""Pause, resume and terminate instances, retry their rollbacks, and accept changed code.

Each is one transaction, or part of the caller's: lock the instance's row, decide by its contents, write, add a row to
the audit trail, notify. Lock order: instance, steps, attempts. A row held by a worker keeps its `wake_at`, the end of
the lease: any other value would let a second worker claim it.
"""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection, transaction
from django.db.models import F

from engine.declare.registry import workflows
from engine.models import Attempt, Instance, Step
from engine.models.instance import InstanceQuerySet
from engine.models.step import StepQuerySet, exhausted_label
from engine.steer import audit, notify, relations, transitions
from engine.steer.clock import ClockTimestamp
from engine.values import between_steps
from engine.values.errors import (
    CodeChangedError,
    InstanceFinishedError,
    InstanceNotFoundError,
    RollbackNotFailedError,
    StepExhaustedError,
)
from engine.values.retry import RETRIED_AFTER
from engine.values.states import (
    Action,
    AttemptPhase,
    InstanceStatus,
    RollbackState,
    allows,
)


def pause(instance: Instance, *, by: object = None, reason: str = "") -> Instance:
    """Stop driving the instance: at once, or as soon as its running bodies have ended and are recorded.

    Does nothing if there is nothing to pause. Returns the instance in its new state.
    """
    return _act(instance, Action.PAUSE, _pause, audit.Cause.of(by, reason))


def resume(instance: Instance, *, by: object = None, reason: str = "") -> Instance:
    """Continue after a pause, or cancel a pause that has not taken effect yet.

    Sleeps, back-offs and the timeouts of waits are extended by the time paused; fixed moments are not. Does nothing
    if there is nothing to resume. Raises StepExhaustedError if it has to be decided first what follows the used-up
    attempts of a step. Returns the instance in its new state.
    """
    return _act(instance, Action.RESUME, _resume_if_decided, audit.Cause.of(by, reason))


def terminate(instance: Instance, *, rollback: bool = False, by: object = None, reason: str = "") -> Instance:
    """End the instance now, and the children that it waits for. A running body is cancelled, and its result is
    refused.

    With `rollback`, its steps are rolled back first, as after an error; it is terminated after that, or at once if
    there is nothing to roll back. The same applies to each of those children, concurrently. Rollbacks that already run
    continue; without `rollback` they are interrupted and count as failed. Raises InstanceFinishedError if it has ended.
    """
    change = _roll_back_family if rollback else _terminate
    data = {"rollback": True} if rollback else None
    return _act(instance, Action.TERMINATE, change, audit.Cause.of(by, reason), data)


def retry_rollback(instance: Instance, *, by: object = None, reason: str = "") -> Instance:
    """Retry the failed rollback with a new set of attempts, then run the remaining ones and end as before.

    Raises RollbackNotFailedError if none has failed. Returns the instance in its new state.
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
    """Let the instance continue with the current code of its workflow, and resume it if the change had paused it.

    Does nothing if it uses that code anyway. Raises InstanceFinishedError if it has ended, and UnknownWorkflowError
    if its workflow is not declared. Returns the instance in its new state.
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
    """Lock the instance's row until the transaction ends, and read its state without its values."""
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
        # Still locked, so that the result is what this call did and not what a worker has done since.
        return instance.refresh()


def _pause(row: Instance) -> InstanceStatus:
    if row.status == InstanceStatus.RUNNING:
        return _update(row, InstanceStatus.WAITING_FOR_PAUSE)
    return _write(row, transitions.PAUSE, InstanceStatus.PAUSED)


def _resume_if_decided(row: Instance) -> InstanceStatus:
    if row.status == InstanceStatus.PAUSED and (
        steps := list(_steps(row).exhausted().defer("output", "error"))
    ):
        used = [(exhausted_label(step), step.attempts - step.options.get(RETRIED_AFTER, 0)) for step in steps]
        raise StepExhaustedError(row.workflow, row.id, used)
    return _resume(row)


def _resume(row: Instance) -> InstanceStatus:
    if row.status == InstanceStatus.WAITING_FOR_PAUSE:
        return _update(row, InstanceStatus.RUNNING)
    return _write(row, transitions.RESUME, InstanceStatus.QUEUED)


def resume_locked(row: Instance) -> InstanceStatus:
    """Resume the locked instance, which is paused. Return the new status."""
    return _resume(row)


def make_due(row: Instance) -> InstanceStatus:
    """Let the locked instance continue now: it waits, and no worker holds it. Return its status."""
    after = _update(row, InstanceStatus(row.status), wake_at=ClockTimestamp())
    notify.wake()
    return after


def stay(row: Instance) -> InstanceStatus:
    """Note that something of the locked instance has changed, though not its status. Return its status."""
    return _update(row, InstanceStatus(row.status))


def _is_paused_by_code(row: Instance) -> bool:
    return isinstance(row.pause_reason, dict) and row.pause_reason.get("type") == CodeChangedError.__name__


def _terminate(row: Instance) -> InstanceStatus:
    after = end(row)
    relations.settle(row.key)
    return after


def end(row: Instance) -> InstanceStatus:
    """Terminate the locked instance. The caller handles the consequences for other instances."""
    return _write(row, transitions.END, InstanceStatus.TERMINATED)


# Rollbacks


def _roll_back_family(row: Instance) -> InstanceStatus:
    """Roll back the instance, and before it the children that would otherwise end with it."""
    children = list(_locked().filter(key__in=relations.tied_to(row.key)).open().order_by("key"))
    for child in reversed(children):
        cause = audit.Cause.of(None, f"Its parent {row.workflow}/{row.id} is rolled back.")
        after = _roll_back(child)
        audit.write(
            Action.TERMINATE, [child], cause, before=child.status, after=after, data={"rollback": True}
        )
    return _roll_back(row)


def _roll_back(row: Instance) -> InstanceStatus:
    """Let a worker run the rollbacks and then end the instance: only a worker has the functions."""
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
    if is_held:  # its worker keeps it and is notified
        return _update(row, InstanceStatus.RUNNING, **telling)
    after = _update(
        row, InstanceStatus.QUEUED, wake_at=ClockTimestamp(), waiting_for="", paused_at=None, **telling
    )
    notify.wake()
    return after


def _has_rollbacks(row: Instance) -> bool:
    """Return whether any step with a recorded rollback was started."""
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
        released_in=None,
    )
    notify.wake()
    return after


def _steps(row: Instance) -> StepQuerySet:
    return Step.objects.filter(instance_id=row.key, generation=row.generation)


def _write(row: Instance, transition: str, after: InstanceStatus) -> InstanceStatus:
    """Apply one of `engine.steer.transitions` to the locked row. Return the new status."""
    with connection.cursor() as cursor:
        cursor.execute(transition, {"key": row.key})
        [_] = cursor.fetchall()
    return after


def _update(row: Instance, status: InstanceStatus, **values: object) -> InstanceStatus:
    """Write the locked row, and notify the worker that held it and the Studio. Return the new status."""
    Instance.objects.filter(key=row.key).update(status=status, signals=F("signals") + 1, **values)
    notify.tell(worker_ids=[] if row.owner is None else [row.owner], changed=[row.key])
    return status
