"""Add the declared paths to the index."""

from __future__ import annotations

import time
from collections.abc import Collection

from django.db import connection

from engine.declare.registry import workflows
from engine.models import IndexedPath
from engine.steer.indexing import writers

WAIT_SECONDS = 0.5

# A path that is being removed stays that, so that its removal can end; it is added again after that. In one order, so
# that two processes cannot deadlock.
_ADD = """
INSERT INTO engine_indexedpath (workflow, path)
SELECT declared.workflow, declared.path FROM unnest(%s::text[], %s::text[]) AS declared (workflow, path)
WHERE NOT EXISTS (
    SELECT FROM engine_indexedpath p WHERE p.workflow = declared.workflow AND p.path = declared.path
)
ORDER BY declared.workflow, declared.path
ON CONFLICT (workflow, path) DO NOTHING
"""

_EMPTY = """
SELECT key FROM engine_indexedpath p
WHERE p.key = ANY (%s) AND NOT EXISTS (SELECT FROM engine_instance i WHERE i.workflow = p.workflow)
LIMIT 1
"""

_COMPLETE_EMPTY = """
UPDATE engine_indexedpath p SET is_complete = true
WHERE p.key = ANY (%s) AND p.is_declared AND NOT p.is_complete
  AND NOT EXISTS (SELECT FROM engine_instance i WHERE i.workflow = p.workflow)
"""


def register() -> None:
    """Add the paths that this code declares. Those of a workflow without instances are complete at once.

    To be called outside of a transaction. A path stays incomplete if a transaction that has written an instance stays
    open for more than WAIT_SECONDS, or if the workflow's first instance starts meanwhile.
    """
    if not any(workflow.search for workflow in workflows.values()):
        return
    add([*workflows])
    incomplete = [one.key for one in declared([*workflows]) if not one.is_complete]
    if incomplete and _are_some_without_instances(incomplete) and _have_writers_ended():
        with connection.cursor() as cursor:
            cursor.execute(_COMPLETE_EMPTY, [incomplete])


def add(names: Collection[str]) -> None:
    """Add the declared paths of these workflows that are missing."""
    pairs = [(name, path) for name in names if name in workflows for path in workflows[name].search]
    with connection.cursor() as cursor:
        cursor.execute(_ADD, [[name for name, _ in pairs], [path for _, path in pairs]])


def declared(names: Collection[str]) -> list[IndexedPath]:
    """Return the rows of the declared paths of these workflows, in the order of their workflows and paths."""
    rows = IndexedPath.objects.filter(workflow__in=names, is_declared=True).order_by("workflow", "path")
    return [row for row in rows if row.workflow in workflows and row.path in workflows[row.workflow].search]


def _are_some_without_instances(keys: Collection[int]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_EMPTY, [[*keys]])
        return cursor.fetchone() is not None


def _have_writers_ended() -> bool:
    until = time.monotonic() + WAIT_SECONDS
    return all(time.monotonic() < until for _ in writers.wait())
