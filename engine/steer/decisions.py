"""Decide what follows when the attempts of a step are used up, or give an unfinished step its output: `retry_step` in
the same generation, `fail_step`, `skip_step`.

No worker holds the instance, so the outcome is written into the row of the step. The next worker delivers it to the
handler, with a delivery number of its own, as it does with the outcome of an atomic step. Lock order as in
`engine.steer.lifecycle`: instance, steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.db import transaction
from django.db.models.expressions import RawSQL

from engine.models import Attempt, Instance, Step
from engine.models.step import exhausted_label
from engine.steer import audit, lifecycle
from engine.steer.clock import ClockTimestamp
from engine.values import between_steps
from engine.values.argument import Argument
from engine.values.errors import StepExhaustedError, StepNotExhaustedError, StepNotSkippableError
from engine.values.identity import TOP
from engine.values.retry import DECISION, RETRIED_AFTER
from engine.values.serialization import Codec
from engine.values.states import (
    OPEN_STEPS,
    Action,
    AttemptPhase,
    AttemptStatus,
    InstanceStatus,
    StepKind,
    StepStatus,
    allows,
)

NAMED = 20  # steps in an entry of the audit trail
_VALUES = Codec.of(Any)  # an output is checked as that of a step without an annotation


def fail_step(
    instance: Instance,
    step: str,
    count: int = 1,
    *,
    seq: int | None = None,
    by: object = None,
    reason: str = "",
) -> Instance:
    """Let a step fail whose attempts are used up, as if it had `on_exhausted="fail"`.

    The handler gets its last error; if nothing is left to decide, the instance goes on. Items of several maps may have
    the same name and count: `seq` says which. Raises StepNotExhaustedError,
    and InstanceNotFoundError. Returns the instance in its new state.
    """
    between_steps.refuse("fail_step")
    cause = audit.Cause.of(by, reason)
    with transaction.atomic():
        row = lifecycle.lock(instance)
        (found,) = exhausted_of(row, (step, count), "fail", seq=seq)
        _end(row, found, cause, {"status": StepStatus.ERRORED}, "failed")
        return _go_on(instance, row, Action.FAIL_STEP, [found], cause)


def skip_step(
    instance: Instance,
    step: str,
    count: int = 1,
    *,
    output: Any = None,
    seq: int | None = None,
    by: object = None,
    reason: str = "",
) -> Instance:
    """Complete a step with this output, without running its body again. It is not rolled back later.

    The attempts of the step are used up, or it waits for its next one, or the instance is paused. The output is checked
    as that of a step; it must be what the handler expects. Raises StepNotSkippableError, InvalidValueError or
    LimitError for the output, and InstanceNotFoundError. Returns the instance in its new state.
    """
    between_steps.refuse("skip_step")
    cause = audit.Cause.of(by, reason)
    with Argument("output"):
        text = _VALUES.encode(output, what="output")
    with transaction.atomic():
        row = lifecycle.lock(instance)
        found = _skippable(row, step, count, seq)
        # A plain None would be no output.
        changes = {"status": StepStatus.COMPLETE, "output": RawSQL("%s::json", (text,)), "error": None}
        found.options = {name: one for name, one in (found.options or {}).items() if name != "rollback"}
        _end(row, found, cause, changes, "skipped")
        return _go_on(instance, row, Action.SKIP_STEP, [found], cause)


def retry_exhausted(instance: Instance, row: Instance, steps: Sequence[Step], cause: audit.Cause) -> Instance:
    """Give these steps of the locked row all their attempts anew, with the same idempotency keys.

    So do nested steps that have failed: otherwise the body would get their failure again.
    """
    inner = _inner(row)
    for step in steps:
        _renew(row, step)
        for nested in _beneath(inner, step.seq):
            if nested.status == StepStatus.ERRORED:
                _renew(row, nested)
    return _go_on(instance, row, Action.RETRY_STEP, steps, cause)


def exhausted_of(
    row: Instance, named: tuple[str, int] | None, action: str, *, seq: int | None = None
) -> list[Step]:
    """Return the steps of the locked row that wait for a decision: all, or the one of this name, count and number.

    Raises StepNotExhaustedError if there is none, or the instance is not paused yet.
    """
    steps = list(Step.objects.of(row).exhausted())
    found = [step for step in steps if _is_meant(step, named, seq)]
    if not found or row.status != InstanceStatus.PAUSED:
        known = [exhausted_label(step) for step in steps]
        raise StepNotExhaustedError(row.workflow, row.id, row.status, action, named, known)
    return found[:1] if named else found


def _is_meant(step: Step, named: tuple[str, int] | None, seq: int | None) -> bool:
    return named is None or ((step.name, step.count) == named and seq in (None, step.seq))


def _skippable(row: Instance, name: str, count: int, seq: int | None) -> Step:
    named = Step.objects.of(row).filter(name=name, count=count).defer("output").order_by("seq")
    steps = [step for step in named if seq in (None, step.seq)]
    bodies = [step for step in steps if step.kind == StepKind.DO and step.status in OPEN_STEPS]
    step = next(iter(bodies or steps), None)
    problem = why_not_skippable(row, step)
    if problem or step is None:
        raise StepNotSkippableError(row.workflow, row.id, name, count, problem)
    return step


def why_not_skippable(row: Instance, step: Step | None) -> str:
    """Return why a step cannot be completed by a person now, or nothing."""
    if step is None:
        return "the current generation has no such step"
    if step.kind != StepKind.DO:
        return _OTHERS.get(
            StepKind(step.kind), "only a step with a body has an output that a person can supply"
        )
    if step.status not in OPEN_STEPS:
        return f"it is {step.status}"
    if not allows(Action.SKIP_STEP, row.status) or row.owner is not None:
        return f"the instance is {row.status.replace('_', ' ')}: pause it first"
    if row.rollback:
        return "the instance is being rolled back"
    if step.parent != TOP and not Step.objects.of(row).filter(seq=step.parent, kind=StepKind.MAP).exists():
        return "it is nested: skip the step around it"
    if _runs(row, step):
        return "an attempt runs"
    return ""


_OTHERS = {
    StepKind.REQUEST: "only an answer or its timeout decides a request",
    StepKind.SLEEP: "end the sleep with wake_now()",
    StepKind.EVENT: "send the event that it waits for",
    StepKind.CHILD: "it waits for another instance",
}


def _runs(row: Instance, step: Step) -> bool:
    made = Attempt.objects.filter(instance_id=row.key, generation=row.generation, step_seq=step.seq)
    return made.filter(phase=AttemptPhase.DO, status=AttemptStatus.RUNNING).exists()


def _end(row: Instance, step: Step, cause: audit.Cause, changes: dict[str, Any], outcome: str) -> None:
    """Write the outcome of a step, and cancel what its body had called."""
    options = {**(step.options or {}), DECISION: {"outcome": outcome, "by": cause.actor}}
    Step.objects.of(row).filter(seq=step.seq).update(
        options=options, wake_at=None, finished_at=ClockTimestamp(), **changes
    )
    inner = [one.seq for one in _beneath(_inner(row), step.seq) if one.status in OPEN_STEPS]
    if inner:
        Step.objects.of(row).filter(seq__in=inner).update(
            status=StepStatus.CANCELLED, wake_at=None, error=None, finished_at=ClockTimestamp()
        )


def _renew(row: Instance, step: Step) -> None:
    """Let a step make its next attempt at once, as the first one of its budget."""
    options = {**(step.options or {}), RETRIED_AFTER: step.attempts}
    Step.objects.of(row).filter(seq=step.seq).update(
        status=StepStatus.WAITING,
        options=options,
        error=None,
        finished_at=None,
        wake_at=row.paused_at,  # the resume adds the time paused
    )


def _go_on(
    instance: Instance, row: Instance, action: Action, steps: Sequence[Step], cause: audit.Cause
) -> Instance:
    """Continue unless something is left to decide, or a person has paused the instance."""
    before = row.status
    if row.status == InstanceStatus.WAITING:
        after = lifecycle.make_due(row)
    elif _is_paused_for_decisions(row) and not Step.objects.of(row).exhausted().exists():
        after = lifecycle.resume_locked(row)
    else:
        after = lifecycle.stay(row)
    data = {"steps": [exhausted_label(step) for step in steps[:NAMED]], "total": len(steps)}
    audit.write(action, [row], cause, before=before, after=after, data=data)
    return instance.refresh()


def _is_paused_for_decisions(row: Instance) -> bool:
    reason = row.pause_reason
    return isinstance(reason, dict) and reason.get("type") == StepExhaustedError.__name__


def _inner(row: Instance) -> dict[int, list[Step]]:
    """Return the inner steps of the generation by the number of their outer step."""
    found: dict[int, list[Step]] = {}
    for step in Step.objects.of(row).exclude(parent=TOP).defer("output", "error"):
        found.setdefault(step.parent, []).append(step)
    return found


def _beneath(inner: dict[int, list[Step]], seq: int) -> Iterator[Step]:
    for step in inner.get(seq, ()):
        yield step
        yield from _beneath(inner, step.seq)
