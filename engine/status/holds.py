"""Paused workflows, each with how many of its instances the pause holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection

from engine.status.search import COUNTED
from engine.steer import audit
from engine.steer.pauses import WorkflowPause

# What only the pause keeps from the workers: due, held by no worker, and not released.
_PAUSED = """
SELECT p.workflow, p.paused_at, p.paused_by, p.reason, p.released, held.n
  FROM engine_workflow_pause p
 CROSS JOIN LATERAL (
       SELECT count(*) AS n FROM (
              SELECT FROM engine_instance i
               WHERE i.workflow = p.workflow AND i.owner IS NULL AND i.wake_at <= (SELECT clock_timestamp())
                 AND i.released_in IS DISTINCT FROM p.key
               LIMIT %(most)s) AS capped) AS held
 WHERE p.workflow = ANY(%(names)s)
 ORDER BY p.workflow
"""


@dataclass(frozen=True, slots=True)
class PausedWorkflow:
    """A paused workflow, and how many of its instances are due and held, up to a limit."""

    pause: WorkflowPause
    held: int

    @property
    def name(self) -> str:
        return self.pause.workflow


def paused_workflows(names: Iterable[str], *, most: int = COUNTED) -> list[PausedWorkflow]:
    """Return those of these workflows that are paused, by their names, with one query."""
    storable = [name for name in names if not audit.is_unstorable(name)]
    with connection.cursor() as cursor:
        cursor.execute(_PAUSED, {"names": storable, "most": most})
        return [PausedWorkflow(WorkflowPause(*pause), held) for *pause, held in cursor.fetchall()]
