"""The recorded steps of a generation, and the attempts at them, as the pages read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Q, TextField
from django.db.models.functions import Cast, Left, Length

from engine.identity import TOP
from engine.models import Attempt, Instance, Step
from engine.states import AttemptPhase
from studio.steps import INLINE

STEPS_SHOWN = 200


def of_generation(model: Any, instance: Instance) -> Any:
    return model.objects.filter(instance_id=instance.key, generation=instance.generation)


def step_rows(instance: Instance) -> Any:
    """Return the query for its steps, with the beginnings of their outputs."""
    return (
        of_generation(Step, instance)
        .defer("output")
        .annotate(
            output_text=Left(Cast("output", TextField()), INLINE + 1),
            output_size=Length(Cast("output", TextField())),
        )
    )


def top_steps(instance: Instance, upto: int | None) -> list[Any]:
    """Read the newest steps of the handler, or the newest of those up to a number, in their order."""
    rows = step_rows(instance).filter(parent=TOP)
    if upto is not None:
        rows = rows.filter(seq__lte=min(upto, 2**31 - 1))
    return list(rows.order_by("-seq")[:STEPS_SHOWN])[::-1]


def attempts_of(instance: Instance, steps: Sequence[Any]) -> dict[int, list[Attempt]]:
    """Read the attempts at these steps and at their rollbacks, the first one first.

    Those at the body of a step that was kept were made in the generation in which it ran.
    """
    found: dict[int, list[Attempt]] = {}
    tried = [step for step in steps if step.attempts]
    if tried:
        rows = Attempt.objects.filter(_made_at(instance, tried), instance_id=instance.key)
        for attempt in rows.order_by("step_seq", "phase", "number"):
            found.setdefault(attempt.step_seq, []).append(attempt)
    return found


def _made_at(instance: Instance, steps: Sequence[Any]) -> Q:
    ran: dict[int, list[int]] = {}
    for step in steps:
        if step.kept_from is not None:
            ran.setdefault(step.kept_from, []).append(step.seq)
    made = Q(generation=instance.generation, step_seq__in=[step.seq for step in steps])
    for generation, seqs in ran.items():
        made |= Q(generation=generation, step_seq__in=seqs, phase=AttemptPhase.DO)
    return made
