"""The progress of an instance's rollbacks."""

from __future__ import annotations

from typing import Any

from engine.models import Attempt, Instance, Step
from engine.status.errors import error_line
from engine.status.facts import OpenStep, Rollback

MOST_ATTEMPTS = 1_000


def rollback_of(instance: Instance) -> Rollback | None:
    """Read it, with two queries if there are rollbacks."""
    if not instance.rollback:
        return None
    rows = Step.objects.filter(instance_id=instance.key, generation=instance.generation)
    steps = list(
        rows.begun_with_rollback().only(
            "seq", "name", "count", "options", "rollback", "wake_at", "started_at"
        )
    )
    at = next((step for step in steps if step.rollback in ("running", "failed")), None)
    return Rollback(
        state=instance.rollback,
        ends_as=instance.ends_as,
        undone=sum(step.rollback == "complete" for step in steps),
        of=len(steps),
        step=None if at is None else _undoing(instance, at),
    )


def _undoing(instance: Instance, step: Step) -> OpenStep:
    rows = Attempt.objects.filter(instance_id=instance.key, generation=instance.generation)
    made = list(rows.filter(step_seq=step.seq, phase="rollback").order_by("-number")[:MOST_ATTEMPTS])
    last = next(iter(made), None)
    is_waiting = last is not None and last.status != "running"
    return OpenStep(
        seq=step.seq,
        name=str(step),
        kind="do",
        is_waiting=is_waiting,
        started_at=last.started_at if last else step.started_at,
        wake_at=step.wake_at,
        attempts=last.number if last else 0,
        max_attempts=most_attempts(step),
        lost=sum(attempt.status == "lost" for attempt in made),
        uncounted=sum(not counts(attempt, step) for attempt in made),
        worker=last.worker if last else "",
        error=error_line(last.error if last else None),
    )


def most_attempts(step: Step) -> int | None:
    """Return how many attempts of its rollback may count."""
    most = _options(step).get("max_attempts")
    return most if isinstance(most, int) else None


def counts(attempt: Attempt, step: Step) -> bool:
    """Return whether an attempt of its rollback counts. Lost and drained attempts do not, nor those before an operator
    retried the rollback."""
    before = _options(step).get("retried_after") or 0
    return attempt.number > before and attempt.status not in ("lost", "cancelled")


def _options(step: Step) -> dict[str, Any]:
    options: Any = step.options.get("rollback") if isinstance(step.options, dict) else None
    return options if isinstance(options, dict) else {}
