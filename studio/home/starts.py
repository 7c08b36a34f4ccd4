"""The instances that a user started last, and what they do now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from engine.status.sentences.bidi import isolated
from engine.status.sentences.sentence import Moment, Sentence, Span
from studio.instances.address import list_address
from studio.instances.queries import Row, rows_by_key, rows_of

SHOWN = 4

# By the index of what somebody started of each workflow: whatever else there is, these rows are read and no others.
_NEWEST = """
SELECT newest.key, (SELECT i.error ->> 'step' FROM engine_instance i WHERE i.key = newest.key)
  FROM (
       SELECT of_one.key
         FROM unnest(%(names)s::text[]) AS name(workflow)
        CROSS JOIN LATERAL (
              SELECT i.key FROM engine_instance i
               WHERE i.started_by = %(by)s AND i.started_by <> '' AND i.workflow = name.workflow
               ORDER BY i.key DESC LIMIT %(shown)s) AS of_one
        ORDER BY of_one.key DESC LIMIT %(shown)s) AS newest
"""


@dataclass(frozen=True, slots=True)
class Start:
    """An instance that a user started."""

    row: Row
    now: Sentence


def starts_of(user: Any, names: Sequence[str]) -> list[Start]:
    """Return what the user started last of these workflows, newest first."""
    values = {"by": user.get_username(), "names": list(names), "shown": SHOWN}
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, values)
        failed_in: dict[int, str | None] = dict(cursor.fetchall())
    if not failed_in:  # as for most people
        return []
    rows = rows_of(rows_by_key(sorted(failed_in, reverse=True)))
    return [Start(row, _now(row, failed_in[row.instance.key])) for row in rows]


def address_of_starts(user: Any) -> str:
    """Return the address of the list of all that the user started."""
    return list_address(by=user.get_username())


def _now(row: Row, failed_in: str | None) -> Sentence:
    match row.status:
        case "complete" if row.instance.finished_at is not None:
            return ("took ", Span(row.began_at, row.instance.finished_at))
        case "errored" if failed_in:
            return (f"failed in {isolated(failed_in)}",)
        case "retrying" if row.instance.wake_at is not None:
            return ("next attempt ", Moment("minute", row.instance.wake_at))
        case status:
            return row.now or (status.replace("_", " "),)
