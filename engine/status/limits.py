"""When something counts as unhealthy, and how far is counted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

MOST = 10_000  # counted of one kind; a larger number says "at least"


@dataclass(frozen=True, slots=True)
class Limits:
    """From when on something counts as a problem."""

    max_due: timedelta = timedelta(seconds=60)  # for which an instance or a schedule may be due
    min_workers: int = 1
    max_paused: int | None = None  # by the engine


def counted(number: int) -> str:
    """Return a number as text, with a plus sign if counting stopped there."""
    return f"{number:,}{'+' if number >= MOST else ''}"
