"""Who started an instance."""

from __future__ import annotations

from engine.models import Instance

CHILDREN_SHOWN = 50


def parent_of(instance: Instance) -> Instance | None:
    """Read who started it, where that was an instance."""
    if instance.parent_key is None:
        return None
    return (
        Instance.objects.only("key", "workflow", "id", "generation").filter(key=instance.parent_key).first()
    )
