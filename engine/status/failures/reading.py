"""Find groups of failures."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from engine.status.failures import sql
from engine.status.failures.found import FailureGroup, Groups
from engine.values.errors import FailureNotFoundError

STATES = ("open", "resolved", "ignored")
MOST = 200  # in one page

_CURSOR = re.compile(r"([0-9]{1,16})-([0-9a-f]{16})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def groups(
    *,
    workflows: Collection[str] | None = None,
    workflow: str | None = None,
    state: str = "open",
    query: str = "",
    limit: int = 50,
    after: str | None = None,
) -> Groups:
    """Return the groups in this state (empty: in any), the latest seen first.

    `query` is a part of the type, the message, the step, the workflow or the frame, in any case, or a fingerprint.
    `after` is `next` of the page before; invalid ones are those of the first page.
    """
    found = _CURSOR.fullmatch(after or "")
    seen = None if found is None else _EPOCH + int(found[1]) * _MICROSECOND
    limit = max(1, min(limit, MOST))
    rows = _read(
        sql.PAGE,
        workflows,
        workflow=workflow or "",
        state=state,
        query=" ".join(query.replace("\0", "").lower().split()),
        after_seen=seen,
        after="" if found is None else found[2],
        limit=limit + 1,
    )
    page = rows[:limit]
    return Groups(page, _cursor(page[-1]) if len(rows) > limit else None)


def group(fingerprint: str, *, workflows: Collection[str] | None = None) -> FailureGroup:
    """Return one group. Raises FailureNotFoundError, also if its workflow may not be seen."""
    rows = _read(sql.ONE, workflows, fingerprint=fingerprint)
    if not rows:
        raise FailureNotFoundError(fingerprint)
    return rows[0]


def kin(fingerprint: str, *, workflows: Collection[str] | None = None) -> list[FailureGroup]:
    """Return the groups of the same error in all workflows, this one included, most errored instances first."""
    return _read(sql.KIN, workflows, fingerprint=fingerprint)


def count_open(*, workflows: Collection[str] | None = None) -> int:
    """Count the open groups."""
    with connection.cursor() as cursor:
        cursor.execute(sql.COUNT_OPEN, {"workflows": None if workflows is None else sorted(workflows)})
        return int(cursor.fetchone()[0])


def _read(statement: str, workflows: Collection[str] | None, **values: Any) -> list[FailureGroup]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"workflows": None if workflows is None else sorted(workflows), **values})
        return [FailureGroup(*row) for row in cursor.fetchall()]


def _cursor(last: FailureGroup) -> str:
    return f"{(last.last_seen - _EPOCH) // _MICROSECOND}-{last.fingerprint}"
