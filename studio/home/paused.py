"""What the engine has paused: the code has changed, a step used up its attempts, or a recorded step does not match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from engine.status.sentences.sentence import Moment, Sentence
from engine.values.fingerprint import normalised
from studio.display.at_least import counted
from studio.errors.groups import first_line
from studio.home.group import Block, Group, Hour, Rank, shares_of

CAP = 1_001  # of a workflow, the newest

# Many have the same reason: each is read as JSON once.
_PAUSED = """
WITH paused AS (
    SELECT name.workflow, i.pause_reason::text AS reason, count(*) AS n, min(i.paused_at) AS since,
           max(i.paused_at) AS last_at, count(*) FILTER (WHERE i.paused_at > %(hour)s) AS in_hour,
           (array_agg(i.id))[1] AS id
      FROM unnest(%(names)s::text[]) AS name(workflow)
     CROSS JOIN LATERAL (
           SELECT i.id, i.started_by, i.paused_at, i.pause_reason FROM engine_instance i
            WHERE i.workflow = name.workflow AND i.status = 'paused' AND i.pause_reason IS NOT NULL
            ORDER BY i.key DESC LIMIT %(cap)s) AS i
     WHERE %(person)s::text IS NULL OR i.started_by = %(person)s
     GROUP BY 1, 2
)
SELECT p.workflow, p.reason ->> 'type', p.reason -> 'details' ->> 'steps',
       CASE WHEN p.reason ->> 'type' IN ('CodeChangedError', 'StepExhaustedError') THEN ''
            ELSE left(p.reason ->> 'message', 300) END,
       sum(p.n)::int, min(p.since), max(p.last_at), sum(p.in_hour)::int, min(p.id)
  FROM (SELECT workflow, reason::json, n, since, last_at, in_hour, id FROM paused OFFSET 0) AS p
 GROUP BY 1, 2, 3, 4
"""


@dataclass(frozen=True, slots=True)
class Paused:
    """Instances of a workflow that the engine paused for the same reason."""

    workflow: str
    type: str
    steps: str
    message: str
    count: int
    since: datetime
    last_at: datetime
    in_hour: int
    any_id: str

    @property
    def title(self) -> str:
        """What happened, without what differs between instances."""
        if self.type == "CodeChangedError":
            return "The code has changed"
        if self.type == "StepExhaustedError":
            steps = ", ".join(part.strip('" ') for part in self.steps.strip("[]").split(",") if part.strip())
            return f"{steps or 'A step'}: attempts used up"
        return first_line(normalised(self.message)) or self.type

    @property
    def outlook(self) -> str:
        if self.type == "CodeChangedError":
            return "paused until the new code is accepted"
        if self.type == "StepExhaustedError":
            return "nothing is rolled back; retry, skip or fail it"
        return "paused by the engine"


def read(names: Sequence[str], now: datetime, *, person: str | None = None) -> list[Paused]:
    """Read what the engine has paused, or what of it a person has started, with one query."""
    values: dict[str, Any] = {
        "names": [*names],
        "person": person,
        "hour": now - timedelta(hours=1),
        "cap": CAP,
    }
    with connection.cursor() as cursor:
        cursor.execute(_PAUSED, values)
        rows = cursor.fetchall()
    return [
        Paused(workflow, kind or "", steps or "", message or "", *rest)
        for workflow, kind, steps, message, *rest in rows
    ]


def blocks(found: Iterable[Paused]) -> Iterator[Block]:
    """Yield a row for each reason, whatever the number of its workflows."""
    by_reason: dict[tuple[str, str], list[Paused]] = {}
    for one in found:
        by_reason.setdefault((one.type, one.title), []).append(one)
    for (kind, title), some in by_reason.items():
        yield (_group(kind, title, some),)


def _group(kind: str, title: str, some: Sequence[Paused]) -> Group:
    shares = shares_of((one.workflow, one.count) for one in some)
    shares = tuple(type(one)(one.workflow, counted(one.count, CAP)) for one in shares)
    total = sum(one.count for one in shares)
    last = max(some, key=lambda one: one.last_at)
    query = f"status:paused workflow:{','.join(one.workflow for one in shares)}"
    then: Sentence = (Moment("ago", last.last_at),) if total == 1 else ("last ", Moment("ago", last.last_at))
    return Group(
        kind="paused",
        rank=Rank.PAUSED,
        key=f"p-{last.workflow}-{last.any_id}" if total == 1 else f"p-{_slug(kind, title)}",
        count=total,
        look="paused",
        title=title,
        shares=shares,
        line=((last.outlook,),),
        since=min(one.since for one in some),
        then=then,
        hour=Hour.of(sum(one.in_hour for one in some)),
        query=query,
        only=last.any_id if total == 1 else "",
    )


def _slug(kind: str, title: str) -> str:
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in f"{kind}-{title}")[:80]
