"""Cursors: where a reader of an instance stands, as text that it can bring back."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from engine.status.changes.marks import Mark
from engine.status.changes.sql import LAST
from engine.values.errors import RepriseError

VERSION = 1
LONGEST = 8_000
# A mark has more only while a transaction stays open for long elsewhere in the database. A cursor leaves the others
# out, and their rows come again.
MOST_SEEN = 200
MOST = 2**63 - 1
LATEST = 253_402_300_800_000_000  # microseconds: the end of the year 9999
_FIELD = re.compile(r"-|(\d{1,19})(,\d{1,19})*", re.ASCII)


class InvalidCursorError(RepriseError, ValueError):
    """The cursor is not one of this instance.

    Start without a cursor: the stream then begins with the whole history.
    """

    def __init__(self, why: str) -> None:
        super().__init__(f"The cursor {why}. Start again without a cursor.")


class Place(NamedTuple):
    """A row's place in the order in which rows are read. It never changes."""

    at: int  # microseconds
    rank: int
    generation: int
    a: int
    b: int


FIRST = Place(0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Cursor:
    """A reader has what was seen at `since`, and of what came between it and `until` the rows up to `place`.

    Without `until` it has no more than that. `told` is the digest of the last state of the instance that it got;
    `is_end` says that it got the end.
    """

    key: int
    since: Mark | None = None
    until: Mark | None = None
    place: Place = FIRST
    told: int | None = None
    is_end: bool = False

    def text(self) -> str:
        fields = (
            [VERSION],
            [self.key],
            _numbers(self.since),
            _numbers(self.until),
            [] if self.until is None else self.place,
            [] if self.told is None else [self.told],
            [int(self.is_end)],
        )
        plain = ".".join(",".join(map(str, field)) if field else "-" for field in fields)
        return urlsafe_b64encode(plain.encode()).decode().rstrip("=")

    @staticmethod
    def of(text: str, key: int) -> Cursor:
        """Read a cursor of the instance with this key. Raises InvalidCursorError."""
        if len(text) > LONGEST:
            raise InvalidCursorError("is too long")
        try:
            plain = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4)).decode("ascii")
        except ValueError:
            raise InvalidCursorError("is not one that a stream has sent") from None
        fields = plain.split(".")
        if len(fields) != 7 or not all(map(_FIELD.fullmatch, fields)):
            raise InvalidCursorError("is not one that a stream has sent")
        version, whose, since, until, place, told, end = map(_parsed, fields)
        if version != [VERSION]:
            raise InvalidCursorError("is of another version of Reprise")
        if whose != [key]:
            raise InvalidCursorError("is of another instance")
        is_time = not place or place[0] == LAST or place[0] <= LATEST
        if len(place) != (5 if until else 0) or len(told) > 1 or not is_time:
            raise InvalidCursorError("is not one that a stream has sent")
        return Cursor(
            key,
            _mark(since),
            _mark(until),
            Place(*place) if place else FIRST,
            told[0] if told else None,
            is_end=end == [1],
        )


def _parsed(field: str) -> list[int]:
    return [] if field == "-" else [min(int(part), MOST) for part in field.split(",")]


def _numbers(mark: Mark | None) -> Sequence[int]:
    """Return a mark as its xmin and the steps from each number to the next, which are short."""
    if mark is None:
        return []
    seen = sorted(mark.seen)[-MOST_SEEN:]
    return [mark.xmin, *(one - before for before, one in zip([mark.xmin, *seen], seen, strict=False))]


def _mark(numbers: Sequence[int]) -> Mark | None:
    if not numbers:
        return None
    first, *seen = accumulate(numbers, lambda a, b: min(a + b, MOST))
    return Mark(first, frozenset(seen))
