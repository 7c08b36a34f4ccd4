"""Where values are in a JSON text, so that problems are marked in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.values.serialization import spans_of


@dataclass(frozen=True, slots=True)
class Place:
    """A range of the text, in characters."""

    start: int
    end: int


def find(text: str, path: Sequence[str]) -> Place:
    """Return the place of the value at `path`, or of the nearest value around it if it is missing.

    The text must be valid JSON. Of an object around a missing field, mark only the opening brace: underlining the whole
    document helps nobody.
    """
    return finder(text)(path)


def finder(text: str) -> Callable[[Sequence[str]], Place]:
    """Return `find` for one text, which is parsed only once."""
    places = {tuple(map(str, where)): Place(*span) for where, span in spans_of(text).items()}

    def found(path: Sequence[str]) -> Place:
        wanted = tuple(path)
        if wanted in places:
            return places[wanted]
        nearest = next(wanted[:depth] for depth in range(len(wanted), -1, -1) if wanted[:depth] in places)
        start = places[nearest].start
        return Place(start, start + 1)

    return found


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return line and column, both starting at 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def utf16(text: str, offset: int) -> int:
    """Return the offset in UTF-16 units, as in JavaScript."""
    return len(text[:offset].encode("utf-16-le", "surrogatepass")) // 2
