"""Requests that wait for the answers of people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import urlencode

from django.db import connection
from django.urls import reverse

from engine.status.sentences.bidi import isolated
from engine.status.sentences.sentence import Moment, Sentence
from engine.steer import requests
from engine.steer.requests import Asked
from studio.access.permissions import may_answer
from studio.display.at_least import counted
from studio.errors.groups import first_line
from studio.home.group import SOON, Block, Group, Hour, Rank, shares_of

CAP = 201  # requests, the first to expire
HOUR = timedelta(hours=1)

# Without the schemas of the answers, which may be large. The order is that of the inner query, so that no more than are
# shown are looked up.
_OPEN = f"""
SELECT r.instance_id, r.generation, r.seq, i.workflow, i.id, s.name, s.message, r.opened_at, r.expires_at, r.assignees
  FROM (SELECT * FROM engine_open_request ORDER BY expires_at NULLS LAST, opened_at OFFSET 0) AS r
 CROSS JOIN LATERAL (
       SELECT s.name, coalesce(left(s.options ->> 'message', 400), '') AS message FROM engine_step s
        WHERE s.instance_id = r.instance_id AND s.generation = r.generation AND s.seq = r.seq OFFSET 0) AS s
{requests.OPEN_SQL} AND i.workflow = ANY (%(names)s)
 ORDER BY r.expires_at NULLS LAST, r.opened_at LIMIT %(cap)s
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Asking:
    """An open request."""

    ref: str
    workflow: str
    id: str
    name: str
    message: str
    opened_at: datetime
    expires_at: datetime | None
    is_own: bool  # this user may answer it


Row = tuple[Any, ...]


def read(names: Sequence[str]) -> list[Row]:
    """Read the open requests, the first to expire first, with one query."""
    values = requests.OPEN_VALUES | {"names": [*names], "cap": CAP}
    with connection.cursor() as cursor:
        cursor.execute(_OPEN, values)
        return list(cursor.fetchall())


def put_to(user: Any, rows: Sequence[Row]) -> list[Asking]:
    """Return the requests that were read, with what this user may answer."""
    may = cache(lambda workflow, assignees: may_answer(Asked("", None, assignees), user, workflow))
    return [_asking(row, may) for row in rows]


def _asking(row: Row, may: Callable[[str, tuple[str, ...]], bool]) -> Asking:
    key, generation, seq, workflow, instance_id, name, message, opened_at, expires_at, assignees = row
    return Asking(
        ref=f"{key}-{generation}-{seq}",
        workflow=workflow,
        id=instance_id,
        name=name,
        message=first_line(message),
        opened_at=opened_at,
        expires_at=expires_at,
        is_own=may(workflow, tuple(assignees)),
    )


def blocks(found: Sequence[Asking], now: datetime, *, own: bool = False) -> Iterator[Block]:
    """Yield a row for each question of a workflow."""
    by_step: dict[tuple[str, str], list[Asking]] = {}
    for one in found:
        if one.is_own or not own:
            by_step.setdefault((one.workflow, one.name), []).append(one)
    is_cut = len(found) >= CAP
    for (workflow, name), some in by_step.items():
        yield (_group(workflow, name, some, now, is_cut=is_cut),)


def _group(workflow: str, name: str, some: Sequence[Asking], now: datetime, *, is_cut: bool) -> Group:
    first = next((one for one in some if one.is_own), some[0])  # the link leads to one that can be answered
    expires_at, mine = some[0].expires_at, sum(one.is_own for one in some)
    since = min(one.opened_at for one in some)
    count = counted(len(some), len(some)) if is_cut and len(some) > 1 else len(some)
    title = first.message or f"{name}: an answer is needed"
    then: Sentence = ("expires ", Moment("left", expires_at)) if expires_at else (Moment("ago", since),)
    box = "mine" if mine else "open"
    return Group(
        kind="approval",
        rank=Rank.EXPIRING if expires_at is not None and expires_at - now < SOON else Rank.ASKING,
        key=f"a-{first.ref}",
        count=count,
        look="approval",
        title=title if len(some) == 1 else f"{isolated(title)} · and {len(some) - 1} more",
        shares=shares_of([(workflow, count)]),
        line=tuple(_line(some, mine, expires_at)),
        since=since,
        then=then,
        hour=Hour.of(sum(now - one.opened_at < HOUR for one in some)),
        page=f"{reverse('studio:approvals')}?{urlencode({'box': box, 'r': first.ref})}",
        verb="Answer" if mine else "Open",
        only=first.id if len(some) == 1 else "",
        next_at=expires_at,
        own_count=mine,
    )


def _line(some: Sequence[Asking], mine: int, expires_at: datetime | None) -> Iterator[Sentence]:
    if len(some) == 1:
        yield ("waits for you" if mine else "waits for others",)
    elif mine in (0, len(some)):
        who = "for you" if mine else "for others"
        yield (f"{'both' if len(some) == 2 else 'all'} wait {who}",)
    else:
        yield (f"{mine} wait{'s' if mine == 1 else ''} for you",)
    if expires_at is not None:
        yield (f"{'expires' if len(some) == 1 else 'the first expires'} at ", Moment("minute", expires_at))
