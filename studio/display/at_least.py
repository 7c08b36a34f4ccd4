"""Counts with a cap: a page never counts a million rows to show "many"."""

from __future__ import annotations


class AtLeast(int):
    """A count that reached its cap: there may be more."""

    def __add__(self, other: int) -> AtLeast:
        return AtLeast(int(self) + int(other))

    __radd__ = __add__

    def __sub__(self, other: int) -> AtLeast:
        return AtLeast(max(int(self) - int(other), 0))

    def __str__(self) -> str:
        return f"{int(self):,}+"


def counted(n: int, cap: int) -> int:
    """Return a count that was limited to a cap; at the cap, "at least one less"."""
    return AtLeast(cap - 1) if n >= cap else n
