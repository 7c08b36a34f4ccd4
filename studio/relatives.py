"""Who started an instance, and which instances the shown generation of it has started."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from engine.models import Instance, Step
from engine.standing.gathering import without_values
from studio.recorded import of_generation

CHILDREN_SHOWN = 50


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
    rows = of_generation(Step, instance).filter(kind="child", kept_from__isnull=False)
    return list(rows.order_by("-seq").values_list("kept_from", "seq")[: CHILDREN_SHOWN + 1])


def parent_of(instance: Instance) -> Instance | None:
    """Read who started it, where that was an instance."""
    if instance.parent_key is None:
        return None
    return (
        Instance.objects.only("key", "workflow", "id", "generation").filter(key=instance.parent_key).first()
    )
