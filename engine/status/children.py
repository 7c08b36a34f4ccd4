"""The instances that an instance has started."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from engine.models import Instance, Step
from engine.status.gathering import without_values

KEPT_READ = 51


def children_of(instance: Instance) -> QuerySet[Instance]:
    """Find what this generation has started, and what the steps that it keeps have started."""
    started = Q(parent_generation=instance.generation)
    for generation, seq in _kept_children(instance):
        started |= Q(parent_generation=generation, parent_step=seq)
    return without_values().filter(started, parent_key=instance.key)


def _kept_children(instance: Instance) -> list[tuple[int, int]]:
    """Find the steps that were kept and have a child: in which generation they ran, and their numbers."""
    if instance.generation == 1:
        return []
    rows = Step.objects.filter(instance_id=instance.key, generation=instance.generation)
    kept = rows.filter(kind="child", kept_from__isnull=False).order_by("-seq").only("kept_from", "seq")
    return [(step.kept_from, step.seq) for step in kept[:KEPT_READ] if step.kept_from is not None]
