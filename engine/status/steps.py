"""The steps of an instance in one generation, with attempts, log lines, inner steps and the progress of rollbacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from engine.models import Attempt, Instance, Log, Step
from engine.status.errors import error_line
from engine.status.facts import OpenStep, Rollback
from engine.status.prepared import Call, Prepared
from engine.values.states import AttemptPhase

MOST_ATTEMPTS = 1_000
GROUPS = ("map", "parallel")
UNEVENTFUL = ("complete", "cancelled")


def steps_of(instance: Instance) -> QuerySet[Step]:
    return Step.objects.filter(instance_id=instance.key, generation=instance.generation)


def calls_of_newest(instance: Instance, limit: int, *, full: bool) -> tuple[Call[Step], Call[Attempt]]:
    """Return the queries for the newest steps, with `full` with their outputs, and for what was attempted of them.

    Their results go to `newest_of`.
    """
    of = instance.key, instance.generation
    return _NEWEST.call(*of, limit=limit, full=full), _NEWEST_ATTEMPTS.call(*of, limit=limit)


def newest_of(
    instance: Instance, steps: Sequence[Step], attempts: Iterable[Attempt]
) -> tuple[list[Step], dict[int, list[Attempt]]]:
    """Return what the queries of `calls_of_newest` found: the steps, oldest first, and their attempts as below."""
    if any(step.kept_from is not None for step in steps):
        return [*reversed(steps)], attempts_by_step(instance, steps)
    seqs = {step.seq for step in steps}
    return [*reversed(steps)], _by_step(attempt for attempt in attempts if attempt.step_seq in seqs)


def _newest(key: int, generation: int, *, limit: int, full: bool) -> QuerySet[Step]:
    rows = Step.objects.filter(instance_id=key, generation=generation).order_by("-seq")
    return (rows if full else rows.defer("output"))[:limit]


def _newest_attempts(key: int, generation: int, *, limit: int) -> QuerySet[Attempt]:
    steps = Step.objects.filter(instance_id=key, generation=generation).order_by("-seq").values("seq")[:limit]
    rows = Attempt.objects.filter(instance_id=key, generation=generation, step_seq__in=steps)
    return rows.order_by("step_seq", "phase", "number")


_NEWEST, _NEWEST_ATTEMPTS = Prepared(_newest), Prepared(_newest_attempts)


def logs_of(instance: Instance) -> QuerySet[Log]:
    return Log.objects.filter(instance_id=instance.key, generation=instance.generation)


def attempts_by_step(instance: Instance, steps: Iterable[Step]) -> dict[int, list[Attempt]]:
    """Return the attempts of these steps and of their rollbacks, by step number, oldest first.

    Attempts of a kept step's body belong to the generation in which it ran.
    """
    tried = [step for step in steps if step.attempts]
    return _by_step(_attempts_of(instance, tried) if tried else ())


def _by_step(attempts: Iterable[Attempt]) -> dict[int, list[Attempt]]:
    found: dict[int, list[Attempt]] = {}
    for attempt in attempts:
        found.setdefault(attempt.step_seq, []).append(attempt)
    return found


def _attempts_of(instance: Instance, tried: Sequence[Step]) -> Iterable[Attempt]:
    seqs = {step.seq for step in tried}
    low, high = min(seqs), max(seqs)
    # Almost all steps in between, as on a page of them: a range is a query that can be prepared.
    if high - low < 2 * len(seqs) and all(step.kept_from is None for step in tried):
        rows = _IN_RANGE.rows(instance.key, instance.generation, low, high)
        return [attempt for attempt in rows if attempt.step_seq in seqs]
    wanted = Attempt.objects.filter(_made_at(instance, tried), instance_id=instance.key)
    return wanted.order_by("step_seq", "phase", "number")


def _in_range(key: int, generation: int, low: int, high: int) -> QuerySet[Attempt]:
    rows = Attempt.objects.filter(instance_id=key, generation=generation)
    return rows.filter(step_seq__gte=low, step_seq__lte=high).order_by("step_seq", "phase", "number")


_IN_RANGE = Prepared(_in_range)


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
    if not wanted:
        return []
    rows = steps_of(instance).filter(parent__in=wanted).order_by("parent", "status", "kind")
    counted = rows.values_list("parent", "status", "kind").annotate(Count("seq"), Sum("attempts"))
    return [Inside(*row) for row in counted]


def items_of(instance: Instance, steps: Iterable[Step]) -> dict[int, dict[str, int]]:
    """Count the items of those steps that are maps or parallels, by the step's number and their status."""
    items: dict[int, dict[str, int]] = {}
    for inside in count_inside(instance, [step.seq for step in steps if step.kind in GROUPS]):
        of_group = items.setdefault(inside.parent, {})
        of_group[inside.status] = of_group.get(inside.status, 0) + inside.count
    return items


def without_done_items(instance: Instance) -> QuerySet[Step]:
    """Return the query for the steps of an instance, except for items of maps and parallels that went well."""
    steps = steps_of(instance)
    groups = steps.filter(kind__in=GROUPS).values("seq")
    return steps.exclude(parent__in=groups, status__in=UNEVENTFUL)


def read_old_milestones(instance: Instance, steps: Iterable[Step]) -> None:
    """Read the message of milestones whose name is not their message: their output, if it was not read."""
    old: Mapping[int, Step] = {step.seq: step for step in steps if step.is_old_milestone}
    if not old:
        return
    for seq, output in steps_of(instance).filter(seq__in=old).values_list("seq", "output"):
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


def retried_after(step: Step) -> int:
    """Return the number of attempts when a person last gave the step new ones; earlier ones do not count."""
    number: Any = step.options.get("retried_after") if isinstance(step.options, dict) else None
    return number if isinstance(number, int) else 0


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
