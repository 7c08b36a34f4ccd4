"""The order of a list, and the places in it where pages begin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_PLACE = re.compile(r"(-?[0-9]{1,18})\.([0-9]{1,18})\.([0-9]{1,18})\.([0-9]{1,18})\.([0-9]{1,18})")
_KEY = re.compile(r"[0-9]{1,18}")
_WINDOW = re.compile(r"w([0-9]{1,18})")


class SortBy(StrEnum):
    """What a list is ordered by. Only finished instances have an end; an open one has lasted until now."""

    STARTED = "started"
    FINISHED = "finished"
    DURATION = "duration"


@dataclass(frozen=True, slots=True)
class Sort:
    """The order of a list."""

    by: SortBy = SortBy.STARTED
    is_descending: bool = True

    @classmethod
    def of(cls, text: str) -> Sort:
        """Read `-started`, `duration` and so on. Raises ValueError."""
        name = text.removeprefix("-")
        if name not in list(SortBy):
            known = ", ".join(f"{one}, -{one}" for one in SortBy)
            raise ValueError(f'"{text[:40]}" is not an order. There are {known}.')
        return cls(SortBy(name), text.startswith("-"))

    def __str__(self) -> str:
        return f"-{self.by}" if self.is_descending else str(self.by)

    @property
    def is_by_start(self) -> bool:
        return self.by is SortBy.STARTED


NEWEST_FIRST = Sort()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ends or begins: after this value and key, in the window of keys that the list is made from.

    `now_us` is the time to which open instances have lasted in that list.
    """

    value: int
    key: int
    low: int
    top: int
    now_us: int

    @classmethod
    def of(cls, text: str) -> Place | None:
        found = _PLACE.fullmatch(text)
        return cls(*map(int, found.groups())) if found else None

    def __str__(self) -> str:
        return f"{self.value}.{self.key}.{self.low}.{self.top}.{self.now_us}"


def is_place(text: str, sort: Sort) -> bool:
    """Return whether a cursor belongs to lists in this order."""
    if sort.is_by_start:
        return key_of(text) is not None
    return Place.of(text) is not None or window_of(text) is not None


def key_of(text: str) -> int | None:
    return int(text) if _KEY.fullmatch(text) else None


def window_of(text: str) -> int | None:
    """Return the key below which the next window of a sorted list begins."""
    found = _WINDOW.fullmatch(text)
    return int(found[1]) if found else None
