"""The workers that are there for a workflow. For people only: nothing is decided by it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from engine.models import Worker

ALIVE_FOR = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class Servers:
    """The living workers of a workflow."""

    count: int = 0
    slots_free: int = 0
    seen_at: datetime | None = None


def servers_of(names: Iterable[str]) -> dict[str, Servers]:
    """Find the living workers of each workflow."""
    living = list(alive())
    held = sum(worker.held for worker in living if worker.role == "shift")
    found: dict[str, Servers] = {}
    for name in names:
        serving = [worker for worker in living if worker.role == "cluster" and name in worker.workflows]
        slots = sum(worker.slots for worker in serving)
        seen = max((worker.seen_at for worker in serving), default=None)
        found[name] = Servers(len(serving), max(slots - held, 0), seen)
    return found


def alive() -> QuerySet[Worker]:
    """Find those that have been seen of late."""
    return Worker.objects.extra(where=["seen_at > clock_timestamp() - %s"], params=[ALIVE_FOR])
