"""Gives the cluster work and waits for it, through the public calls that any program has."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tests.bench import marks

if TYPE_CHECKING:
    from engine.declare.registry import Workflow

# Longer than anything takes that is worth measuring.
PATIENCE = 300.0
MOST_AT_ONCE = 10_000  # that `start_many` takes
MANY = 50_000  # counting them takes long

_batches = itertools.count(1)


def names(count: int) -> list[str]:
    """Make up ids that were never there; those of one call begin alike."""
    batch = next(_batches)
    return [f"{batch}-{number}" for number in range(count)]


def workflow(flow: str) -> Workflow[Any, Any]:
    from engine import workflows

    return workflows[flow]


def start(flow: str, ids: Sequence[str], **params: Any) -> None:
    items = [{"params": {"inst": one, **params}, "id": one} for one in ids]
    for first in range(0, len(items), MOST_AT_ONCE):
        some = items[first : first + MOST_AT_ONCE]
        started = workflow(flow).start_many(some)  # type: ignore[arg-type]
        assert not started.errors, started.errors[:3]


def run(flow: str, ids: Sequence[str], **params: Any) -> float:
    """Start instances and wait until all are complete; return how many seconds that took."""
    began = time.monotonic()
    with marks.Marks() as log:
        start(flow, ids, **params)
        log.wait(marks.END, len(ids), seconds=PATIENCE)
    wait_for(ids, "complete")
    return time.monotonic() - began


def wait_for(ids: Sequence[str], status: str, *, patience: float = PATIENCE) -> None:
    """Wait until all instances of one batch have this status."""
    from engine.models import Instance

    batch = ids[0].split("-")[0]
    reached = Instance.objects.filter(id__startswith=f"{batch}-", status=status)
    ends_at = time.monotonic() + patience
    while (count := reached.count()) < len(ids):
        if time.monotonic() > ends_at:
            raise TimeoutError(f"{count} of {len(ids)} instances {status} after {patience:g} s")
        time.sleep(0.01 if len(ids) < MANY else 1.0)


def clear() -> None:
    """Forget every instance; nothing may be at work."""
    from django.apps import apps
    from django.db import connection

    every = (model._meta.db_table for model in apps.get_app_config("engine").get_models())
    tables = ", ".join(table for table in every if table != "engine_audit")  # which refuses it
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {tables} CASCADE")
