"""Read what a cursor leads to, in pages."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from django.db import connection

from engine.models import Instance
from engine.status import documents
from engine.status.changes import sql
from engine.status.changes.cursor import Cursor, InvalidCursorError, Place
from engine.status.changes.kinds import KINDS, RANKS, Kind
from engine.status.changes.marks import NOTHING_SEEN, Mark, look, one_snapshot
from engine.status.changes.rows import by_place
from engine.status.gathering import facts_of
from engine.status.sentences import status_line
from engine.status.sentences.sentence import as_text
from engine.values.states import FINAL

PAGE = 400  # rows


@dataclass(frozen=True, slots=True)
class Change:
    """A row as it is now, and the cursor that leads on from there."""

    kind: Kind
    document: documents.Document
    cursor: Cursor


@dataclass(frozen=True, slots=True)
class End:
    """How an instance ended; without a status it was deleted."""

    status: str | None
    generation: int | None


@dataclass(frozen=True, slots=True)
class Page:
    """Changes in the order of their times, the cursor after the last, and the end if there is nothing more to come.

    `until` is the mark up to which the changes were looked for.
    """

    changes: Sequence[Change]
    after: Cursor
    until: Mark
    end: End | None = None

    @property
    def is_last(self) -> bool:
        """Whether the reader has everything that its mark `until` sees."""
        return self.after.until is None


def read(
    cursor: Cursor,
    kinds: Collection[Kind] = tuple(Kind),
    *,
    limit: int = PAGE,
    names_relatives: bool = True,
) -> Page:
    """Return what comes after a cursor, at most `limit` changes. One without `until` gets the mark of now.

    What has changed since `until` is left out: it comes after the next mark. `names_relatives` is whether texts name
    the instances that it waits for. Raises InvalidCursorError.
    """
    with one_snapshot():
        has_news, until = True, cursor.until
        if until is None:
            now = look(cursor.key, cursor.since)
            has_news, until = now.has_news, now.mark
            cursor = replace(cursor, until=until)
        is_settled = _is_settled(cursor)
        instance = Instance.objects.filter(key=cursor.key).defer("params", "output").first()
        if instance is None:
            return Page((), Cursor(cursor.key, since=until, is_end=True), until, End(None, None))
        places = _places(cursor, kinds, limit) if has_news else []
        changes, cursor = _changes(cursor, instance, places[:limit], names_relatives=names_relatives)
    if len(places) > limit:
        return Page(changes, cursor, until)
    after = Cursor(cursor.key, since=until, told=cursor.told)
    if changes:
        changes[-1] = replace(changes[-1], cursor=after)
    if is_settled and instance.status in FINAL:
        return Page(changes, replace(after, is_end=True), until, End(instance.status, instance.generation))
    return Page(changes, after, until)


def _changes(
    cursor: Cursor, instance: Instance, places: Sequence[Place], *, names_relatives: bool
) -> tuple[list[Change], Cursor]:
    """Return the changes at these places, and the cursor after them."""
    found = by_place(instance.key, places)
    changes: list[Change] = []
    for place in places:
        kind, cursor = KINDS[place.rank], replace(cursor, place=place)
        if kind is not Kind.INSTANCE:
            changes.append(Change(kind, found[place], cursor))
        elif (digest := _digest(instance)) != cursor.told:
            cursor = replace(cursor, told=digest)
            changes.append(Change(kind, _state(instance, names_relatives=names_relatives), cursor))
    return changes, cursor


def _is_settled(cursor: Cursor) -> bool:
    """Tell whether the instance is as it was at `until`. Raises InvalidCursorError for marks of another database."""
    with connection.cursor() as execute:
        execute.execute(sql.STATE, _values(cursor))
        top, is_settled = execute.fetchone()
    if any(mark is not None and mark.xmin > top for mark in (cursor.since, cursor.until)):
        raise InvalidCursorError("is of another database")
    return bool(is_settled)


def _places(cursor: Cursor, kinds: Collection[Kind], limit: int) -> list[Place]:
    ranks = [RANKS[kind] for kind in kinds]
    values = {**_values(cursor), **cursor.place._asdict(), "ranks": ranks, "limit": limit + 1}
    with connection.cursor() as execute:
        execute.execute(sql.PAGE, values)
        return [Place(*row) for row in execute.fetchall()]


def _values(cursor: Cursor) -> dict[str, Any]:
    values: dict[str, Any] = {"key": cursor.key}
    for name, mark in (("since", cursor.since), ("until", cursor.until)):
        mark = mark or NOTHING_SEEN
        values |= {f"{name}_xmin": mark.xmin, f"{name}_seen": sorted(mark.seen)}
    return values


def _state(instance: Instance, *, names_relatives: bool) -> documents.Document:
    facts = facts_of(instance) if names_relatives else facts_of(instance).without_relatives()
    return documents.instance(instance) | {
        "why": as_text(status_line.status_line(facts), facts.now),
        "error": documents.error(instance.last_problem, full=False),
    }


def _digest(instance: Instance) -> int:
    """Return a number by which to tell whether a reader knows this state.

    A worker that holds the instance moves `wake_at` on every few seconds; that is not a change.
    """
    known: documents.Document = documents.instance(instance) | {"error": instance.last_problem}
    if instance.owner is not None:
        known["wake_at"] = None
    return crc32(json.dumps(known, default=str, sort_keys=True).encode())
