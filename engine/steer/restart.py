"""Restart instances: from the start, or from a step (docs/guarantees.md, 14).

In one transaction, the current generation is closed and kept unchanged, and the next one is queued with copies of the
steps that it keeps. A worker that still holds the instance is fenced. Lock order as in `engine.steer.lifecycle`:
instance, steps, attempts, events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from engine.declare.params import validate_params
from engine.declare.registry import workflows
from engine.models import Event, Instance, Step, Waiter
from engine.steer import audit, notify, relations, sql
from engine.steer.decisions import exhausted_of, retry_exhausted
from engine.steer.lifecycle import end, lock
from engine.steer.restart_plan import PlannedStep, RestartPlan, Split, split, split_at_failure
from engine.values import between_steps
from engine.values.argument import Argument
from engine.values.errors import InstanceNotFoundError, InvalidValueError, StepNotExhaustedError
from engine.values.identity import REQUEST_TYPE
from engine.values.states import Action, InstanceStatus
from engine.values.unchanged import UNCHANGED

__all__ = ["NEW", "SAME", "PlannedStep", "RestartPlan", "preview", "preview_retry", "restart", "retry_step"]

NEW, SAME = "new", "same"  # idempotency keys


def restart(
    instance: Instance,
    from_step: str | None = None,
    count: int = 1,
    kind: str = "do",
    *,
    params: Any = UNCHANGED,
    keys: str = NEW,
    by: object = None,
    reason: str = "",
) -> Instance:
    """Start a new generation of the instance, whatever its status. Earlier generations are kept unchanged.

    With `from_step` (a top-level step, by name, count and kind), it keeps the outcomes of the steps that started
    before that one, and runs it and all later ones again; events consumed by their waits go back to the buffer.
    Without `from_step`, it keeps nothing, and buffered events are dropped; then `params` may give it others, which are
    validated as at a start. Raises StepNotFoundError, RestartError if a
    step that it would keep was rolled back, KeysSpentError if a step that would keep its idempotency key was,
    InstanceNotFoundError, and for params the errors of `start`; then nothing is changed. Returns the instance in its
    new state.
    """
    between_steps.refuse("restart")
    cause = audit.Cause.of(by, reason)
    same_keys, text = _keeps_keys(keys), _checked(instance, params, from_step)
    target = None if from_step is None else (from_step, count, kind)
    with transaction.atomic():
        row = lock(instance)
        steps = split(row, target)
        data: dict[str, Any] = {} if target is None else {"count": count, "kind": kind}
        data |= {"from_step": from_step} | ({} if text is None else {"has_new_params": True})
        begin = _Beginning(text, same_keys=same_keys, drops=target is None)
        _renew(row, steps, cause, data, begin)
        return instance.refresh()


def retry_step(
    instance: Instance,
    step: str | None = None,
    count: int = 1,
    *,
    seq: int | None = None,
    by: object = None,
    reason: str = "",
) -> Instance:
    """Run the step again that has failed for good and ended the instance, or whose attempts are used up and have
    paused it, with all its attempts and the same idempotency key.

    A paused instance goes on in the same generation, when nothing is left to decide: with all steps that wait for a
    decision, or the one of this name and count; items of several maps may share these, and `seq` says which. If the
    instance has ended, a new generation keeps what the handler had received before the failure, and what had finished
    inside the step: items of a map, branches, nested steps. Everything else runs again, with the same keys.

    Raises StepNotExhaustedError if no such step waits for a decision, StepNotFailedError if the instance has not ended
    because of a step, KeysSpentError or RestartError if rollbacks have run, and InstanceNotFoundError; then nothing is
    changed. Returns the instance in its
    new state.
    """
    between_steps.refuse("retry_step")
    cause = audit.Cause.of(by, reason)
    named = None if step is None else (step, count)
    with transaction.atomic():
        row = lock(instance)
        if not row.is_finished and (named or Step.objects.of(row).exhausted().exists()):
            return retry_exhausted(instance, row, exhausted_of(row, named, "retry", seq=seq), cause)
        steps, failed = split_at_failure(row)
        if named not in (None, (failed.name, failed.count)):
            raise StepNotExhaustedError(row.workflow, row.id, row.status, "retry", named, [])
        data = {"from_step": failed.name, "count": failed.count, "kind": failed.kind, "is_retry": True}
        _renew(row, steps, cause, data, _Beginning(same_keys=True))
        return instance.refresh()


def preview_retry(instance: Instance) -> RestartPlan:
    """Return what `retry_step` would do now. Raises StepNotFailedError and InstanceNotFoundError."""
    row = _unlocked(instance)
    steps, _ = split_at_failure(row)
    return _plan(row, steps, drops=False)


def preview(
    instance: Instance, from_step: str | None = None, count: int = 1, kind: str = "do"
) -> RestartPlan:
    """Return what `restart` would do now. Raises StepNotFoundError and InstanceNotFoundError."""
    target = None if from_step is None else (from_step, count, kind)
    row = _unlocked(instance)
    return _plan(row, split(row, target), drops=target is None)


def _unlocked(instance: Instance) -> Instance:
    row = Instance.objects.defer("params", "output").filter(key=instance.key).first()
    if row is None:
        raise InstanceNotFoundError(instance.workflow, instance.id)
    return row


def _plan(row: Instance, steps: Split, *, drops: bool) -> RestartPlan:
    return RestartPlan(
        generation=row.generation + 1,
        keeps=steps.keeps,
        runs_again=steps.runs_again,
        kept_inside=steps.inside.finished,
        returned_events=0 if drops else _consumed(row, steps),
        dropped_events=_dropped(row, drops=drops),
        ended_children=_ask(sql.CHILDREN_THAT_END, key=row.key, generation=row.generation),
        refused="" if steps.refusal is None else str(steps.refusal),
        keys_spent="" if steps.spent is None else str(steps.spent),
    )


def _keeps_keys(keys: str) -> bool:
    if keys not in (NEW, SAME):
        rule = f'It must be "{NEW}" or "{SAME}".'
        raise InvalidValueError("$", "unknown_keys", rule, what="keys")
    return keys == SAME


def _checked(instance: Instance, params: Any, from_step: str | None) -> str | None:
    """Return new params as they are stored; None if they stay as they are."""
    if params is UNCHANGED:
        return None
    if from_step is not None:
        rule = "Only a restart from the start can change them: kept steps have run with the old ones."
        raise InvalidValueError("$", "not_from_the_start", rule, what="params")
    with Argument("params"):
        return validate_params(workflows[instance.workflow], params)


@dataclass(frozen=True, slots=True)
class _Beginning:
    """How the next generation begins, besides the steps that it keeps."""

    params: str | None = None  # new ones, as they are stored
    same_keys: bool = False
    drops: bool = False  # buffered events


def _renew(
    row: Instance, steps: Split, cause: audit.Cause, data: dict[str, Any], beginning: _Beginning
) -> None:
    """Close the generation of the locked row, and begin the next one."""
    if steps.refusal is not None:
        raise steps.refusal
    if beginning.same_keys and steps.spent is not None:
        raise steps.spent
    before = row.status
    _close(row, with_params=beginning.params is not None)
    _begin(row, steps, beginning)
    facts: dict[str, Any] = {"generation": row.generation + 1, "kept": len(steps.keeps)}
    if steps.inside.finished:
        facts["kept_inside"] = steps.inside.finished
    if beginning.same_keys:
        facts["keys"] = SAME
    audit.write(Action.RESTART, [row], cause, before=before, after=InstanceStatus.QUEUED, data=facts | data)


def _close(row: Instance, *, with_params: bool) -> None:
    """Record the current generation as ended. One that is still open ends here."""
    if not row.is_finished:
        end(row)
    Waiter.objects.filter(waiter_id=row.key).delete()
    _ask(sql.KEEP_GENERATION, key=row.key, with_params=with_params)


def _begin(row: Instance, steps: Split, beginning: _Beginning) -> None:
    which = {"key": row.key, "generation": row.generation}
    if steps.seqs:
        _ask(sql.KEEP_STEPS, **which, seqs=steps.seqs)
    if steps.inside.reopened:
        _ask(sql.REOPEN_STEPS, **which, seqs=list(steps.inside.reopened))
    _ask(sql.DROP_EVENTS, key=row.key, answers=REQUEST_TYPE, all=beginning.drops)
    if not beginning.drops:
        _ask(sql.RETURN_EVENTS, **which, seqs=steps.discarded)
    workflow = workflows.served.get(row.workflow)
    is_to_notify = _ask(
        sql.NEXT_GENERATION,
        key=row.key,
        keeps=bool(steps.seqs),
        params=beginning.params,
        same_keys=beginning.same_keys,
        code=None if workflow is None else workflow.fingerprint,
        timeout=None if workflow is None else workflow.timeout,
    )
    if is_to_notify:
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
