"""The workers that are there for a workflow. For people only: nothing is decided by it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.db.models import QuerySet

from engine.models import Worker
from engine.status.facts import Servers
from engine.steer.clock import ClockTimestamp

ALIVE_FOR = timedelta(seconds=20)
# A cluster that has no shift after this long is draining, or its shifts cannot start.
STARTS_WITHIN = timedelta(seconds=60)


def servers_of(names: Iterable[str]) -> dict[str, Servers]:
    """Find the living workers of each workflow."""
    living = list(alive())
    return {name: _servers([one for one in living if name in one.workflows]) for name in names}


def all_servers() -> Servers:
    """Find all living workers, whatever they serve."""
    return _servers(list(alive()))


def alive() -> QuerySet[Worker]:
    """Find the rows of those that were seen lately. A process that was killed leaves its row behind."""
    return Worker.objects.filter(seen_at__gt=ClockTimestamp() - ALIVE_FOR)


def _servers(rows: Sequence[Worker]) -> Servers:
    """Only a process that runs a shift drives instances. A cluster has a row as well, for all of its shifts."""
    workers = [row for row in rows if row.role == "shift"]
    return Servers(
        count=len(workers),
        slots=sum(row.slots for row in workers),
        held=sum(min(row.held, row.slots) for row in workers),  # it may hold more than it has slots
        is_full=bool(workers) and all(row.held >= row.slots for row in workers),
        is_starting=not workers and any(row.seen_at - row.started_at < STARTS_WITHIN for row in rows),
        seen_at=max((row.seen_at for row in workers), default=None),
    )
