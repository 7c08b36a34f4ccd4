"""An entry of the stream, where it is in the stream, and how four ordered lists become one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from heapq import merge
from typing import Any

Place = tuple[int, ...]  # of an entry in the list that it comes from, larger for newer entries

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ENCODED = re.compile(r"[0-9]{1,18}(?:-[0-9]{1,18}){8}")


class Kind(StrEnum):
    EVENTS = "events"
    ATTEMPTS = "attempts"
    ACTIONS = "actions"
    VOTES = "votes"
    NOTES = "notes"
    LOGS = "logs"


class Source(StrEnum):
    """A table that entries come from."""

    AUDIT = "audit"
    EVENT = "event"
    LOG = "log"
    ATTEMPT = "attempt"


PARTS = {Source.AUDIT: 1, Source.EVENT: 1, Source.LOG: 1, Source.ATTEMPT: 6}  # numbers in a place


@dataclass(frozen=True, slots=True)
class StepName:
    """A step as an entry names it, with the address at which the page shows it."""

    label: str
    address: str


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that happened. `row` is the row that says so."""

    source: Source
    kind: Kind
    place: Place
    at: datetime
    row: Any
    step: StepName | None = None
    text: str = ""  # the beginning of the payload of an event, of an answer, or of an error
    is_approval: bool | None = None  # of a vote; None if it is neither an approval nor a refusal

    @property
    def payload(self) -> str:
        """What names the payload of an event in an address."""
        return f"event-{self.row.key}"

    @property
    def id(self) -> str:
        """The id of its row on the page. It does not change when an attempt ends."""
        if self.source != Source.ATTEMPT:
            return f"y-{self.source}-{self.row.key}"
        return f"y-attempt-{self.row.generation}-{self.row.step_seq}-{self.row.phase}-{self.row.number}"


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position between two entries: for each table, the place below which the older ones are."""

    below: Mapping[Source, Place]

    @classmethod
    def of(cls, text: str) -> Cursor | None:
        """Return it from an address, or None if it is missing or invalid."""
        if not _ENCODED.fullmatch(text):
            return None
        numbers = [int(part) for part in text.split("-")]
        below = {}
        for source, length in PARTS.items():
            below[source], numbers = tuple(numbers[:length]), numbers[length:]
        try:
            moment_of(below[Source.ATTEMPT][2])
        except OverflowError:
            return None
        return cls(below)

    def __str__(self) -> str:
        return "-".join(str(number) for source in PARTS for number in self.below[source])

    def is_above(self, entry: Entry) -> bool:
        """Return whether an entry is older than the position."""
        return entry.place < self.below[entry.source]

    def is_at_or_below(self, other: Cursor) -> bool:
        """Return whether no entry between the other position and the newest one is below this one."""
        return all(self.below[source] <= other.below[source] for source in PARTS)


BOTTOM = Cursor({source: (0,) * length for source, length in PARTS.items()})


@dataclass(frozen=True, slots=True)
class Entries:
    """A page of the stream. `newest` is where it begins, `older` where the next one does, or None at the end."""

    shown: tuple[Entry, ...]
    older: Cursor | None
    newest: Cursor = BOTTOM


def together(lists: Mapping[Source, Sequence[Entry]], limit: int) -> Entries:
    """Return the newest entries of lists that have one more than `limit`, if there are as many.

    Each list is in the order of its places. That is nearly the order of time, as rows are numbered before they are
    committed; the newest head is taken first, so that no entry is left out or repeated on the next page.
    """
    shown = tuple(merge(*lists.values(), key=_moment, reverse=True))[:limit]
    newest = Cursor(
        {source: _after(lists.get(source, ())) or (0,) * length for source, length in PARTS.items()}
    )
    if sum(len(found) for found in lists.values()) <= limit:
        return Entries(shown, None, newest)
    below: dict[Source, Place] = {}
    for source, length in PARTS.items():
        found = lists.get(source, ())
        taken = sum(entry.source == source for entry in shown)
        # Where none was taken, the newest is the next one: what arrives later belongs to an earlier page.
        below[source] = found[taken - 1].place if taken else _after(found) or (0,) * length
    return Entries(shown, Cursor(below), newest)


def _after(found: Sequence[Entry]) -> Place:
    return (*found[0].place[:-1], found[0].place[-1] + 1) if found else ()


def _moment(entry: Entry) -> datetime:
    return entry.at


def micros_of(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment_of(micros: int) -> datetime:
    """Return the moment of a place. Raises OverflowError."""
    return _EPOCH + timedelta(microseconds=micros)
