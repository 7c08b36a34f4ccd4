"""Queries for the table of workflows. None scans without a limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from engine.declare.registry import workflows as registry
from engine.status.facts import Servers
from engine.status.holds import PausedWorkflow
from engine.status.servers import servers_of
from studio.instances.status_counts import counts_by_status, open_by_status
from studio.workflows import lints
from studio.workflows.pauses import Pauses, paused_of

# The newest of each workflow and status, from the index in that order. With plain equalities the planner prefers to
# scan the primary key, past every row of the others (4 s for 200,000 rows); row comparisons prevent that.
_NEWEST = """
SELECT name.workflow, newest.key, newest.created_at
  FROM unnest(%s::text[]) AS name(workflow)
 CROSS JOIN unnest(%s::text[]) AS state(status)
 CROSS JOIN LATERAL (
       SELECT i.key, i.created_at FROM engine_instance i
        WHERE (i.workflow, i.status) >= (name.workflow, state.status)
          AND (i.workflow, i.status) <= (name.workflow, state.status)
        ORDER BY i.workflow, i.status, i.key DESC LIMIT %s) AS newest
"""

_STATUSES = [
    "queued",
    "running",
    "waiting_for_pause",
    "paused",
    "complete",
    "errored",
    "terminated",
    "waiting",
]


@dataclass(frozen=True, slots=True)
class Overview:
    """A workflow, as the table shows it."""

    name: str
    description: str
    is_known: bool
    counts: Mapping[str, int]
    last_at: datetime | None
    servers: Servers
    pause: PausedWorkflow | None = None

    @property
    def lints(self) -> lints.Tally:
        """The lint findings of its code, computed once per process, without the database."""
        return lints.tally(self.name)

    @property
    def pauses(self) -> Pauses:
        return Pauses((self.name,), (self.pause,) if self.pause is not None else ())

    @property
    def summary(self) -> str:
        """The first paragraph of the description, on one line."""
        return " ".join(self.description.split("\n\n")[0].split())


def overviews(names: Sequence[str], *, only_open: bool = False, without_last: bool = False) -> list[Overview]:
    """Read the table of workflows. `only_open`: count no instances that have ended. `without_last`: no last start."""
    counts = open_by_status(names) if only_open else counts_by_status(names)
    last: dict[str, datetime] = {}
    for name, _, created_at in () if without_last else _newest(names, _STATUSES, 1):
        last[name] = max(created_at, last.get(name, created_at))
    servers = servers_of(names)
    paused = {one.name: one for one in paused_of(names)}
    return [
        Overview(
            name=name,
            description=registry[name].description if name in registry else "",
            is_known=name in registry,
            counts=counts[name],
            last_at=last.get(name),
            servers=servers[name],
            pause=paused.get(name),
        )
        for name in names
    ]


def _newest(names: Sequence[str], statuses: Sequence[str], limit: int) -> list[tuple[str, int, datetime]]:
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, [list(names), list(statuses), limit])
        return cursor.fetchall()
