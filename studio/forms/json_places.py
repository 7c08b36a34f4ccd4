"""Where in a JSON text a value stands, so that a wrong field is marked at its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.values.serialization import spans_of


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of the text, in characters."""

    start: int
    end: int


def find(text: str, path: Sequence[str]) -> Place:
    """Give the place of the value at `path`; where it is missing, the place of the nearest value around it.

    The text must be valid JSON. An object around a missing field is marked by its opening brace only: a whole
    document underlined tells nothing.
    """
    return finder(text)(path)


def finder(text: str) -> Callable[[Sequence[str]], Place]:
    """Return `find` for one text, which is read only once."""
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
    """Give line and column, both from 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def utf16(text: str, offset: int) -> int:
    """Give the offset as JavaScript counts."""
    return len(text[:offset].encode("utf-16-le", "surrogatepass")) // 2
