"""The workers that serve a workflow, and how many of its instances run. For display only: nothing is decided by it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.db.models import Count, QuerySet

from engine.declare.registry import workflows
from engine.models import Instance, Worker
from engine.status.facts import Capacity, Servers
from engine.status.prepared import Prepared
from engine.steer.clock import ClockTimestamp
from engine.steer.workers import ALIVE_FOR as ALIVE_FOR
from engine.values.states import InstanceStatus
from engine.values.system import is_system

# A cluster without a shift after this time is draining, or its shifts cannot start.
STARTS_WITHIN = timedelta(seconds=60)

HELD = [InstanceStatus.RUNNING, InstanceStatus.WAITING_FOR_PAUSE]


def servers_of(names: Iterable[str], living: Sequence[Worker] | None = None) -> dict[str, Servers]:
    """Return the live workers of each workflow: of one of Reprise itself, all. `living` are all, if they were read."""
    if living is None:
        living = ALIVE.rows()
    return {
        name: _servers([one for one in living if is_system(name) or name in one.workflows]) for name in names
    }


def all_servers(living: Sequence[Worker] | None = None) -> Servers:
    """Return all live workers, whatever they serve. `living` are all, if they were read already."""
    return _servers(ALIVE.rows() if living is None else living)


def alive() -> QuerySet[Worker]:
    """Return the rows of workers seen recently. A killed process leaves its row behind."""
    return Worker.objects.filter(seen_at__gt=ClockTimestamp() - ALIVE_FOR)


ALIVE = Prepared(alive)


def capacity_of(names: Iterable[str]) -> dict[str, Capacity]:
    """Count the held instances of workflows with a limit. If no workflow has one, nothing is queried."""
    limits = workflows.limits()
    limited = sorted(limits.keys() & set(names))
    if not limited:
        return {}
    rows = Instance.objects.filter(workflow__in=limited, status__in=HELD).values_list("workflow")
    held = dict(rows.annotate(Count("key")))
    return {name: Capacity(limits[name], held.get(name, 0)) for name in limited}


def _servers(rows: Sequence[Worker]) -> Servers:
    """Count the shifts, which drive instances. A cluster also has a row, for all of its shifts."""
    workers = [row for row in rows if row.role == "shift"]
    return Servers(
        count=len(workers),
        slots=sum(row.slots for row in workers),
        held=sum(
            min(row.held, row.slots) for row in workers
        ),  # a shift may hold more instances than it has slots
        is_full=bool(workers) and all(row.held >= row.slots for row in workers),
        is_starting=not workers and any(row.seen_at - row.started_at < STARTS_WITHIN for row in rows),
        seen_at=max((row.seen_at for row in workers), default=None),
    )
