"""Marks: which transactions a reader of an instance has seen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from engine.status.changes import sql


@dataclass(frozen=True, slots=True)
class Mark:
    """A reader has seen what all transactions before `xmin` wrote, and those in `seen`; nothing of any other.

    `xmin` is that of a snapshot: the oldest transaction that was open. `seen` are the later ones that had committed
    and written rows of the instance. PostgreSQL's own `pg_visible_in_snapshot` does not help here: it takes a row
    written in a savepoint for visible while the transaction around it is open, and a reader would miss it.
    """

    xmin: int
    seen: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at an instance found: the mark of now, and whether anything is new since the mark before."""

    mark: Mark
    has_news: bool


NOTHING_SEEN = Mark(0)


def look(key: int, since: Mark | None) -> Look:
    """Look at an instance as a reader does who has seen everything up to `since`."""
    before = since or NOTHING_SEEN
    values: dict[str, Any] = {"key": key, "since_xmin": before.xmin, "since_seen": sorted(before.seen)}
    with connection.cursor() as cursor:
        cursor.execute(sql.LOOK, values)
        low, seen, is_there, has_news = cursor.fetchone()
    return Look(Mark(low, frozenset(seen or ())), bool(has_news) or not is_there)


@contextmanager
def one_snapshot() -> Iterator[None]:
    """Let all queries of a block see the same state. It must not be inside of another transaction."""
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
