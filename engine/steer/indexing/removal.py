"""Remove the paths that the code no longer declares, with their values.

First the triggers are told to write no more values there; then the values go, in batches; the path goes last. So a
stopped removal is continued by the next.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from django.db import connection

from engine.declare.registry import workflows
from engine.models import IndexedPath
from engine.steer import clusters
from engine.steer.indexing import writers
from engine.steer.indexing.writers import Waiting

BATCH = 5_000  # values
AGAIN_SECONDS = 0.1

# Never waits for a lock, so it cannot deadlock: values that a transaction has locked are left for the next batch.
# Materialized, because a nested loop could read the subquery again, and lock more than its limit.
_DELETE = """
WITH doomed AS MATERIALIZED (
    SELECT instance_id, path_id FROM engine_searchvalue WHERE path_id = %s
    ORDER BY path_id, text, instance_id LIMIT %s FOR UPDATE SKIP LOCKED
)
DELETE FROM engine_searchvalue v USING doomed d WHERE v.instance_id = d.instance_id AND v.path_id = d.path_id
"""


@dataclass(frozen=True, slots=True)
class Removed:
    """A path whose values are being removed: how many so far, and whether that was all."""

    workflow: str
    path: str
    values: int
    is_over: bool = False


def remove(only: Collection[str] | None = None) -> Iterator[Removed | Waiting]:
    """Remove what is not declared, of these workflows or of all; report after each batch.

    Paths of workflows that this code does not declare stay while a running cluster declares the workflow. To be called
    outside of a transaction.
    """
    doomed = _undeclared(only)
    IndexedPath.objects.filter(key__in=[row.key for row in doomed]).update(
        is_declared=False, is_complete=False
    )
    if doomed:
        yield from writers.wait()
    for row in doomed:
        yield from _remove(row)


def _remove(row: IndexedPath) -> Iterator[Removed]:
    count = 0
    while row.values.exists():
        with connection.cursor() as cursor:
            cursor.execute(_DELETE, [row.key, BATCH])
            gone = cursor.rowcount
        count += gone
        yield Removed(row.workflow, row.path, count)
        if not gone:
            time.sleep(AGAIN_SECONDS)
    IndexedPath.objects.filter(key=row.key, is_declared=False).delete()
    yield Removed(row.workflow, row.path, count, is_over=True)


def _undeclared(only: Collection[str] | None) -> list[IndexedPath]:
    rows = IndexedPath.objects.order_by("workflow", "path")
    if only is not None:
        rows = rows.filter(workflow__in=only)
    left = [row for row in rows if not _is_declared(row)]
    strange = {row.workflow for row in left} - set(workflows)
    strange -= clusters.declared(strange)
    return [
        row for row in left if row.workflow in workflows or row.workflow in strange or not row.is_declared
    ]


def _is_declared(row: IndexedPath) -> bool:
    """Return whether the code declares it, and no removal has begun."""
    return row.is_declared and row.workflow in workflows and row.path in workflows[row.workflow].search
