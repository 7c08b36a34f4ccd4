"""The small bars in a row of a table: what happened in each of some spans of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HEIGHT = 26
STEP, WIDTH = 8, 6
LEAST = 8  # of something to the full height, so that one does not look like a flood


@dataclass(frozen=True, slots=True)
class SmallBars:
    """The bars of a row as two paths, shorter than a rectangle for each: spans with something, and others."""

    some: str
    none: str


def small_bars(counts: Sequence[int]) -> SmallBars:
    """Return the bars of a row, the oldest first."""
    highest = max(LEAST, *counts)
    some, none = list[str](), list[str]()
    for at, count in enumerate(counts):
        height = bar_height(count, highest, HEIGHT)
        (some if count else none).append(f"M{at * STEP} {HEIGHT}v-{height}h{WIDTH}v{height}z")
    return SmallBars("".join(some), "".join(none))


def bar_height(count: int, highest: int, full: int) -> int:
    """Return how high a bar is: one of nothing is seen, and one of something is higher."""
    return max(3, round(count / highest * full)) if count else 2
