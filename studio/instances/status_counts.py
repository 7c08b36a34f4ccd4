"""Count instances by shown status. Each count stops at a cap.

Whatever a page shows, and to whom, the counts of the same workflows are the same: all pages and tabs share them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

from engine.steer import requests
from engine.values.shown import display_status
from engine.values.states import WaitingFor
from studio.display.at_least import AtLeast, counted
from studio.frame.unchanged import Unchanged

COUNT_CAP = 10_001

# Each count stops at the cap: a page never counts a million rows to show "many". All are of an index only: that of the
# lists, and for what waits the one of what it waits for. With plain equalities the planner may take that of the lists
# there, too, and read each row that waits to find a few that wait for a retry; row comparisons prevent that.
_OF_EACH = """
SELECT name.workflow, state.status, '' AS waiting_for, counted.n
  FROM unnest(%(names)s::text[]) AS name(workflow)
 CROSS JOIN unnest(%(statuses)s::text[]) AS state(status)
 CROSS JOIN LATERAL (
       SELECT count(*) AS n
         FROM (SELECT FROM engine_instance i
                WHERE i.workflow = name.workflow AND i.status = state.status LIMIT %(cap)s) AS capped) AS counted
 WHERE counted.n > 0
UNION ALL
SELECT name.workflow, 'waiting', kind.waiting_for, counted.n
  FROM unnest(%(names)s::text[]) AS name(workflow)
 CROSS JOIN unnest(%(kinds)s::text[]) AS kind(waiting_for)
 CROSS JOIN LATERAL (
       SELECT count(*) AS n
         FROM (SELECT FROM engine_instance i
                WHERE i.status = 'waiting' AND (i.workflow, i.waiting_for) >= (name.workflow, kind.waiting_for)
                  AND (i.workflow, i.waiting_for) <= (name.workflow, kind.waiting_for)
                ORDER BY i.workflow, i.waiting_for, i.key DESC LIMIT %(cap)s) AS capped) AS counted
 WHERE counted.n > 0
"""
# The same for all together: whatever the number of workflows, no more rows are counted. The inner LIMIT keeps each
# workflow a descent of the index.
_OF_ALL = """
SELECT '', state.status, '' AS waiting_for, counted.n
  FROM unnest(%(statuses)s::text[]) AS state(status)
 CROSS JOIN LATERAL (
       SELECT count(*) AS n
         FROM (SELECT FROM unnest(%(names)s::text[]) AS name(workflow)
                CROSS JOIN LATERAL (
                      SELECT FROM engine_instance i
                       WHERE i.workflow = name.workflow AND i.status = state.status LIMIT %(cap)s) AS of_one
                LIMIT %(cap)s) AS capped) AS counted
 WHERE counted.n > 0
UNION ALL
SELECT '', 'waiting', kind.waiting_for, counted.n
  FROM unnest(%(kinds)s::text[]) AS kind(waiting_for)
 CROSS JOIN LATERAL (
       SELECT count(*) AS n
         FROM (SELECT FROM unnest(%(names)s::text[]) AS name(workflow)
                CROSS JOIN LATERAL (
                      SELECT FROM engine_instance i
                       WHERE i.status = 'waiting' AND (i.workflow, i.waiting_for) >= (name.workflow, kind.waiting_for)
                         AND (i.workflow, i.waiting_for) <= (name.workflow, kind.waiting_for)
                       ORDER BY i.workflow, i.waiting_for, i.key DESC LIMIT %(cap)s) AS of_one
                LIMIT %(cap)s) AS capped) AS counted
 WHERE counted.n > 0
"""
_ASKING = f"""
SELECT i.workflow, i.waiting_for, count(DISTINCT r.instance_id) FROM engine_open_request r
{requests.OPEN_SQL} AND i.status = 'waiting' AND i.workflow = ANY (%(names)s) GROUP BY 1, 2
"""  # noqa: S608

SETS = 50  # of workflows whose counts are kept, at most
_each = Unchanged[Mapping[str, Mapping[str, int]]](most=SETS)
_totals = Unchanged[Mapping[str, int]](most=SETS)
_OPEN = ["queued", "running", "waiting_for_pause", "paused"]
_CLOSED = ["complete", "errored", "terminated"]


def counts_by_status(names: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
    """Count the instances of each workflow by shown status, up to the cap."""
    return _each.read((frozenset(names), True), lambda: _of_each(names, [*_OPEN, *_CLOSED]))


def open_by_status(names: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
    """Count the open instances of each workflow by shown status, up to the cap."""
    return _each.read((frozenset(names), False), lambda: _of_each(names, _OPEN))


def totals_by_status(names: Sequence[str]) -> Mapping[str, int]:
    """Count the instances of these workflows together by shown status, up to the cap."""
    return _totals.read(frozenset(names), lambda: _count_together(names))


def _count_together(names: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    rows = _ask(_OF_ALL, names, [*_OPEN, *_CLOSED])
    for _, status, waiting_for, n in rows:
        _add(found, display_status(status, waiting_for), n)
    if any(waiting_for for _, _, waiting_for, _ in rows):
        for (_, waiting_for), n in asking_by_workflow(names).items():
            _ask_people(found, waiting_for, n)
    return found


def _of_each(names: Sequence[str], statuses: Sequence[str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {name: {} for name in names}
    waiting = set()
    for workflow, status, waiting_for, n in _ask(_OF_EACH, names, statuses):
        _add(found[workflow], display_status(status, waiting_for), n)
        if waiting_for:
            waiting.add(workflow)
    for (workflow, waiting_for), n in asking_by_workflow(sorted(waiting)).items() if waiting else ():
        _ask_people(found[workflow], waiting_for, n)
    return found


def _add(by_status: dict[str, int], look: str, n: int) -> None:
    by_status[look] = by_status.get(look, 0) + counted(n, COUNT_CAP)


def _ask_people(by_status: dict[str, int], waiting_for: str, n: int) -> None:
    """Count instances that wait for people as such, and not as what their rows say."""
    look = display_status("waiting", waiting_for)
    by_status["approval"] = by_status.get("approval", 0) + n
    left = by_status.get(look, 0) - n
    by_status[look] = left if isinstance(left, AtLeast) else max(left, 0)


def _ask(statement: str, names: Sequence[str], statuses: Sequence[str]) -> list[tuple[str, str, str, int]]:
    kinds = [str(kind) for kind in WaitingFor]
    values: Mapping[str, Any] = {
        "names": list(names),
        "statuses": [*statuses],
        "kinds": kinds,
        "cap": COUNT_CAP,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def asking_by_workflow(names: Sequence[str]) -> dict[tuple[str, str], int]:
    """Count parked instances with an open request, by workflow and by the `waiting_for` of their row."""
    with connection.cursor() as cursor:
        cursor.execute(_ASKING, requests.OPEN_VALUES | {"names": list(names)})
        return {(workflow, waiting_for): n for workflow, waiting_for, n in cursor.fetchall()}
