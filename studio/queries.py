"""Every question that lists and overviews ask the database. None of them reads a payload or scans without bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models import Q, QuerySet
from psycopg.errors import QueryCanceled

from engine.declare.registry import workflows as registry
from engine.models import Instance
from engine.status.facts import Servers
from engine.status.gathering import without_values
from engine.status.search import id_begins, keys_alike, workflow_names
from engine.status.servers import servers_of
from engine.steer.requests import open_requests
from studio import inbox, lints
from studio.at_least import AtLeast, counted
from studio.display_status import PARKED, display_status, stored
from studio.filters import Filter

PAGE = 50
COUNT_CAP = 10_001


class TooSlowError(Exception):
    """A search took longer than a page may."""


@contextmanager
def patience(seconds: int) -> Iterator[None]:
    """Let the database give up on what runs inside after so many seconds."""
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = '{seconds:d}s'")
            yield
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TooSlowError from error
        raise


# --- workflows --------------------------------------------------------------------------------------------------------

# Each count stops at the cap: a page never counts a million rows to say "many". Only what waits is told apart further,
# so that all other counts, the large ones among them, are read from the index alone. What tries again has an index of
# its own: a few of those must not be lost among more sleepers than are counted.
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

# The newest of each workflow and status, from the index sorted that way. Asked with plain equalities, the planner
# prefers to walk the primary key, past every row of the others (4 s on 200,000 rows); with rows compared it cannot.
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

_NOT_WAITING = ["queued", "running", "waiting_for_pause", "paused", "complete", "errored", "terminated"]
_STATUSES = [*_NOT_WAITING, "waiting"]


@dataclass(frozen=True, slots=True)
class Overview:
    """A workflow as the table of workflows shows it."""

    name: str
    description: str
    is_known: bool
    counts: Mapping[str, int]
    last_at: datetime | None
    servers: Servers

    @property
    def lints(self) -> lints.Tally:
        """What the code of the workflow gives away; read once per process, and from no database."""
        return lints.tally(self.name)

    @property
    def summary(self) -> str:
        """The first paragraph of the description, on one line."""
        return " ".join(self.description.split("\n\n")[0].split())


def counts_by_status(names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Count the instances of each workflow by shown status, each count up to the cap."""
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
    for (workflow, waiting_for), n in inbox.asking_by_workflow(names).items():
        by_status, look = found[workflow], display_status("waiting", waiting_for)
        by_status["approval"] = by_status.get("approval", 0) + n
        left = by_status.get(look, 0) - n
        by_status[look] = left if isinstance(left, AtLeast) else max(left, 0)
    return found


def _stopped(rows: Iterable[tuple[str, str, str, int]]) -> set[str]:
    """Name the workflows of which more are parked than were counted: what each of them waits for is not known."""
    parked: dict[str, int] = {}
    for workflow, _, waiting_for, n in rows:
        if waiting_for not in ("", "retry"):
            parked[workflow] = parked.get(workflow, 0) + n
    return {workflow for workflow, n in parked.items() if n >= COUNT_CAP}


def overviews(names: Sequence[str] | None = None) -> list[Overview]:
    """Read the table of workflows."""
    names = workflow_names() if names is None else names
    counts = counts_by_status(names)
    last: dict[str, datetime] = {}
    for name, _, created_at in _newest(names, _STATUSES, 1):
        last[name] = max(created_at, last.get(name, created_at))
    servers = servers_of(names)
    return [
        Overview(
            name=name,
            description=registry[name].description if name in registry else "",
            is_known=name in registry,
            counts=counts[name],
            last_at=last.get(name),
            servers=servers[name],
        )
        for name in names
    ]


def _newest(names: Sequence[str], statuses: Sequence[str], limit: int) -> list[tuple[str, int, datetime]]:
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, [list(names), list(statuses), limit])
        return cursor.fetchall()


# --- instances --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list, newest first; the cursors are keys, so that nothing shifts while rows come."""

    instances: list[Instance]
    newer: int | None
    older: int | None

    @property
    def top(self) -> int:
        return self.instances[0].key if self.instances else 0


def matching(wanted: Filter) -> QuerySet[Instance]:
    """Give the instances that a filter lets through."""
    if wanted.is_impossible:
        return Instance.objects.none()
    rows = without_values()
    if wanted.workflow:
        rows = rows.filter(workflow=wanted.workflow)
    if wanted.status:
        fits = Q()
        for status, waiting_for in stored(wanted.status):
            fits |= Q(status=status) if waiting_for is None else Q(status=status, waiting_for=waiting_for)
        rows = rows.filter(fits)
    asking = open_requests().values("instance_id")
    if wanted.status == "approval":
        rows = rows.filter(key__in=asking)
    elif wanted.status in PARKED:
        rows = rows.exclude(key__in=asking)
    return rows.filter(id_begins(wanted.q)) if wanted.q else rows


def narrowed(wanted: Filter) -> list[int] | None:
    """Return the keys of all instances with such an ID, to look among those only; None where they are too many, or
    where no ID is asked for."""
    return keys_alike(wanted.q) if wanted.q and not wanted.is_impossible else None


def page_of(
    wanted: Filter,
    *,
    before: int | None = None,
    after: int | None = None,
    among: Sequence[int] | None = None,
) -> Page:
    """Read one page: the newest, or those older than `before`, or those newer than `after`.

    `among` are the keys of `narrowed`.
    """
    rows = matching(wanted) if among is None else matching(replace(wanted, q="")).filter(key__in=among)
    if after is not None:
        nearest = list(rows.filter(key__gt=after).order_by("key")[: PAGE + 1])
        more = len(nearest) > PAGE
        found = nearest[:PAGE][::-1]
        return Page(found, found[0].key if more and found else None, found[-1].key if found else None)
    if before is not None:
        rows = rows.filter(key__lt=before)
    found = list(rows.order_by("-key")[: PAGE + 1])
    more, found = len(found) > PAGE, found[:PAGE]
    return Page(
        found,
        found[0].key if before is not None and found else None,
        found[-1].key if more else None,
    )


def counts_among(wanted: Filter, keys: Sequence[int]) -> dict[str, int]:
    """Count those of these instances that are of the workflow of a filter, by shown status."""
    rows = Instance.objects.filter(key__in=keys, **({"workflow": wanted.workflow} if wanted.workflow else {}))
    asking = set(open_requests().filter(instance_id__in=keys).values_list("instance_id", flat=True))
    counts: dict[str, int] = {}
    for key, status, waiting_for in rows.values_list("key", "status", "waiting_for"):
        look = display_status(status, waiting_for, asks=key in asking)
        counts[look] = counts.get(look, 0) + 1
    return counts


def count_newer(wanted: Filter, key: int, cap: int = 99) -> int:
    """Count what came since a page was made, up to the cap."""
    return matching(wanted).filter(key__gt=key).order_by()[:cap].count()


def rows_by_key(keys: Sequence[int]) -> list[Instance]:
    """Read again the rows that a page shows, in its order."""
    found: dict[int, Any] = {row.key: row for row in without_values().filter(key__in=keys)}
    return [found[key] for key in keys if key in found]
