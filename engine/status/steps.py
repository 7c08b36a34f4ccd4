"""The steps of an instance in one generation, with attempts, log lines, inner steps and the progress of rollbacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from engine.models import Attempt, Instance, Log, Step
from engine.status.errors import error_line
from engine.status.facts import OpenStep, Rollback
from engine.values.states import AttemptPhase

MOST_ATTEMPTS = 1_000


def steps_of(instance: Instance) -> QuerySet[Step]:
    return Step.objects.filter(instance_id=instance.key, generation=instance.generation)


def logs_of(instance: Instance) -> QuerySet[Log]:
    return Log.objects.filter(instance_id=instance.key, generation=instance.generation)


def attempts_by_step(instance: Instance, steps: Iterable[Step]) -> dict[int, list[Attempt]]:
    """Return the attempts of these steps and of their rollbacks, by step number, oldest first.

    Attempts of a kept step's body belong to the generation in which it ran.
    """
    found: dict[int, list[Attempt]] = {}
    tried = [step for step in steps if step.attempts]
    rows = Attempt.objects.filter(_made_at(instance, tried), instance_id=instance.key)
    for attempt in rows.order_by("step_seq", "phase", "number") if tried else ():
        found.setdefault(attempt.step_seq, []).append(attempt)
    return found


def _made_at(instance: Instance, steps: Sequence[Step]) -> Q:
    ran: dict[int, list[int]] = {}
    for step in steps:
        if step.kept_from is not None:
            ran.setdefault(step.kept_from, []).append(step.seq)
    made = Q(generation=instance.generation, step_seq__in=[step.seq for step in steps])
    for generation, seqs in ran.items():
        made |= Q(generation=generation, step_seq__in=seqs, phase=AttemptPhase.DO)
    return made


@dataclass(frozen=True, slots=True)
class Inside:
    """How many inner steps have one status and kind, and how often they were attempted."""

    parent: int
    status: str
    kind: str
    count: int
    attempts: int


def count_inside(instance: Instance, parents: Iterable[int]) -> list[Inside]:
    """Count the steps inside these, by parent, status and kind, in this order."""
    wanted = list(parents)
    rows = steps_of(instance).filter(parent__in=wanted).order_by("parent", "status", "kind")
    counted = rows.values_list("parent", "status", "kind").annotate(Count("seq"), Sum("attempts"))
    return [Inside(*row) for row in counted] if wanted else []


def read_old_milestones(instance: Instance, steps: Iterable[Step]) -> None:
    """Read the message of milestones whose name is not their message: their output, if it was not read."""
    old: Mapping[int, Step] = {step.seq: step for step in steps if step.is_old_milestone}
    rows = steps_of(instance).filter(seq__in=old).values_list("seq", "output")
    for seq, output in rows if old else ():
        old[seq].output = output


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
        max_attempts=most_rollback_attempts(step),
        lost=sum(attempt.status == "lost" for attempt in made),
        uncounted=sum(not rollback_attempt_counts(attempt, step) for attempt in made),
        worker=last.worker if last else "",
        error=error_line(last.error if last else None),
    )


def most_rollback_attempts(step: Step) -> int | None:
    """Return how many attempts of its rollback may count."""
    most = _options(step).get("max_attempts")
    return most if isinstance(most, int) else None


def rollback_attempt_counts(attempt: Attempt, step: Step) -> bool:
    """Return whether an attempt of its rollback counts. Lost and drained attempts do not, nor those before an operator
    retried the rollback."""
    before = _options(step).get("retried_after") or 0
    return attempt.number > before and attempt.status not in ("lost", "cancelled")


def _options(step: Step) -> dict[str, Any]:
    options: Any = step.options.get("rollback") if isinstance(step.options, dict) else None
    return options if isinstance(options, dict) else {}
