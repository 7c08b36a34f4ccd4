"""The steps of an instance in one generation, with their attempts, log lines and inner steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet, Sum

from engine.models import Attempt, Instance, Log, Step
from engine.values.states import AttemptPhase


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
