"""The steps that entries are about, by name."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q

from engine.models import Instance, Step
from studio.instance.activity.entry import StepName

Number = tuple[int, int]  # of a step: its generation and its seq


def names_of(instance: Instance, wanted: Iterable[Number]) -> dict[Number, StepName]:
    """Return the names of steps, with one query, and one more if there are items of maps among them."""
    found = {(step.generation, step.seq): step for step in _read(instance, wanted)}
    around = {(step.generation, step.parent) for step in found.values() if step.parent}
    kinds = {(step.generation, step.seq): step.kind for step in _read(instance, around)}
    return {
        number: StepName(
            _label(step, is_item=kinds.get((step.generation, step.parent)) == "map"),
            step_address(instance, step),
        )
        for number, step in found.items()
    }


def step_address(instance: Instance, step: Step) -> str:
    """Return the address at which the page shows a step, however many steps there are."""
    past = f"generation={step.generation}&" if step.generation != instance.generation else ""
    inside = f"&open={step.parent}" if step.parent else ""
    return f"{instance.get_absolute_url()}?{past}upto={step.parent or step.seq}{inside}#s-{step.seq}"


def _read(instance: Instance, wanted: Iterable[Number]) -> list[Step]:
    by_generation: dict[int, set[int]] = {}
    for generation, seq in wanted:
        by_generation.setdefault(generation, set()).add(seq)
    if not by_generation:
        return []
    numbered = Q()
    for generation, seqs in by_generation.items():
        numbered |= Q(generation=generation, seq__in=seqs)
    rows = Step.objects.filter(numbered, instance_id=instance.key)
    return list(rows.only("generation", "seq", "parent", "kind", "name", "count"))


def _label(step: Step, *, is_item: bool) -> str:
    if step.is_old_milestone:
        return step.name
    return f"{step.name}[{step.count - 1}]" if is_item else str(step)
