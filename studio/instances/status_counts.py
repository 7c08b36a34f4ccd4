"""Count instances by shown status. Each count stops at a cap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import connection
from django.db.models import Count

from engine.steer.requests import open_requests
from engine.values.shown import display_status
from studio.display.at_least import AtLeast, counted

COUNT_CAP = 10_001

# Each count stops at the cap: a page never counts a million rows to show "many". Only waiting instances are divided
# further, so that all other counts, including the large ones, use index-only scans. Retrying instances have their own
# index: a few of them must not be missed among more sleeping ones than are counted.
_COUNTS = """
SELECT name.workflow, state.status, '' AS waiting_for, counted.n
  FROM unnest(%(names)s::text[]) AS name(workflow)
 CROSS JOIN unnest(%(statuses)s::text[]) AS state(status)
 CROSS JOIN LATERAL (
       SELECT count(*) AS n
         FROM (SELECT FROM engine_instance i
                WHERE i.workflow = name.workflow AND i.status = state.status LIMIT %(cap)s) AS capped) AS counted
 WHERE counted.n > 0
UNION ALL
SELECT name.workflow, 'waiting', counted.waiting_for, counted.n
  FROM unnest(%(names)s::text[]) AS name(workflow)
 CROSS JOIN LATERAL (
       SELECT waiting_for, count(*) AS n
         FROM (SELECT waiting_for FROM engine_instance i
                WHERE i.workflow = name.workflow AND i.status = 'waiting' AND i.waiting_for <> 'retry'
                LIMIT %(cap)s) AS capped
        GROUP BY waiting_for
       UNION ALL
       SELECT 'retry', count(*)
         FROM (SELECT FROM engine_instance i
                WHERE i.workflow = name.workflow AND i.status = 'waiting' AND i.waiting_for = 'retry'
                LIMIT %(cap)s) AS capped) AS counted
 WHERE counted.n > 0
"""

_NOT_WAITING = ["queued", "running", "waiting_for_pause", "paused", "complete", "errored", "terminated"]


def counts_by_status(names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Count the instances of each workflow by shown status, up to the cap."""
    found: dict[str, dict[str, int]] = {name: {} for name in names}
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, {"names": list(names), "statuses": _NOT_WAITING, "cap": COUNT_CAP})
        rows = cursor.fetchall()
    stopped = _stopped(rows)
    for workflow, status, waiting_for, n in rows:
        is_cut = workflow in stopped and waiting_for not in ("", "retry")
        by_status, look = found[workflow], display_status(status, waiting_for)
        by_status[look] = by_status.get(look, 0) + (
            AtLeast(min(n, COUNT_CAP - 1)) if is_cut else counted(n, COUNT_CAP)
        )
    for (workflow, waiting_for), n in asking_by_workflow(names).items():
        by_status, look = found[workflow], display_status("waiting", waiting_for)
        by_status["approval"] = by_status.get("approval", 0) + n
        left = by_status.get(look, 0) - n
        by_status[look] = left if isinstance(left, AtLeast) else max(left, 0)
    return found


def _stopped(rows: Iterable[tuple[str, str, str, int]]) -> set[str]:
    """Return the workflows with more parked instances than were counted: what the rest wait for is unknown."""
    parked: dict[str, int] = {}
    for workflow, _, waiting_for, n in rows:
        if waiting_for not in ("", "retry"):
            parked[workflow] = parked.get(workflow, 0) + n
    return {workflow for workflow, n in parked.items() if n >= COUNT_CAP}


def asking_by_workflow(names: Sequence[str]) -> dict[tuple[str, str], int]:
    """Count parked instances with an open request, by workflow and by the `waiting_for` of their row."""
    rows = open_requests().filter(instance__status="waiting", instance__workflow__in=names)
    waiting = rows.values_list("instance__workflow", "instance__waiting_for")
    return {
        (workflow, waiting_for): n
        for workflow, waiting_for, n in waiting.annotate(n=Count("instance_id", distinct=True))
    }
