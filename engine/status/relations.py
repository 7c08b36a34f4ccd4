"""The parent and the children of an instance."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from engine.models import Instance
from engine.status.gathering import without_values
from engine.status.steps import steps_of

KEPT_READ = 51


def parent_of(instance: Instance) -> Instance | None:
    """Return the instance that started it, if any and if it still exists."""
    if instance.parent_key is None:
        return None
    rows = Instance.objects.only("key", "workflow", "id", "generation", "status")
    return rows.filter(key=instance.parent_key).first()


def children_of(instance: Instance) -> QuerySet[Instance]:
    """Return what this generation started, and what the steps that it keeps started."""
    started = Q(parent_generation=instance.generation)
    for generation, seq in _kept_children(instance):
        started |= Q(parent_generation=generation, parent_step=seq)
    return without_values().filter(started, parent_key=instance.key)


def _kept_children(instance: Instance) -> list[tuple[int, int]]:
    """Return the kept steps that have a child: the generation in which they ran, and their numbers."""
    if instance.generation == 1:
        return []
    kept = steps_of(instance).filter(kind="child", kept_from__isnull=False).order_by("-seq")
    rows = kept.only("kept_from", "seq")[:KEPT_READ]
    return [(step.kept_from, step.seq) for step in rows if step.kept_from is not None]
