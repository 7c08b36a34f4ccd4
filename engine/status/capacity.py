"""How many instances run of workflows with max_running."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Count

from engine.declare.registry import workflows
from engine.models import Instance
from engine.status.facts import Capacity
from engine.values.states import InstanceStatus

HELD = [InstanceStatus.RUNNING, InstanceStatus.WAITING_FOR_PAUSE]


def capacity_of(names: Iterable[str]) -> dict[str, Capacity]:
    """Count the held instances of workflows that have a limit. Without such a workflow there is no query."""
    limits = workflows.limits()
    limited = sorted(limits.keys() & set(names))
    rows = Instance.objects.filter(workflow__in=limited, status__in=HELD).values_list("workflow")
    held = dict(rows.annotate(Count("key"))) if limited else {}
    return {name: Capacity(limits[name], held.get(name, 0)) for name in limited}
