"""What a search has found, and how much it has looked at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Searched:
    """How much was searched."""

    rows: int | None = None
    """So many instances were looked at, from the newest or the oldest on; None if nothing was left out."""
    of: int | None = None
    """About how many there are, if some were left out."""
    go_on: str = ""
    """The cursor from which the search goes on, if it has not looked at all."""
    hint: str = ""
    """What would let an index find all."""

    @property
    def is_all(self) -> bool:
        return self.rows is None


@dataclass(frozen=True, slots=True)
class Found:
    """A page of instances, in order."""

    keys: list[int]
    older: str
    """The cursor of the next page; empty at the end."""
    newer: str
    """The cursor of the page before, to be passed as `after`; empty at the beginning."""
    searched: Searched
