"""The bars of a workflow's last 24 hours, as paths of an SVG, and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.status.last_day import Hour

WIDTH, HEIGHT = 216, 28
STEP, BAR = 9, 8
EMPTY, AIR, LOWEST = 2, 1, 2
FULL = 8  # runs: one alone must not look like a flood


@dataclass(frozen=True, slots=True)
class DayBars:
    """A path of each colour: hours in which nothing ended, what went well, and above it what failed."""

    none: str
    complete: str
    errored: str
    words: str


def day_bars(hours: Sequence[Hour]) -> DayBars:
    """Return the bars of a workflow, on its own scale."""
    most = max(FULL, *(one.complete + one.errored for one in hours))
    none, complete, errored = [], [], []
    for number, hour in enumerate(hours):
        left = number * STEP
        good, bad = _height(hour.complete, most), _height(hour.errored, most)
        air = AIR if good and bad else 0
        good = min(good, HEIGHT - bad - air)
        if good:
            complete.append(_bar(left, HEIGHT - good, good))
        if bad:
            errored.append(_bar(left, HEIGHT - good - air - bad, bad))
        if not good and not bad:
            none.append(_bar(left, HEIGHT - EMPTY, EMPTY))
    return DayBars("".join(none), "".join(complete), "".join(errored), _words(hours))


def _height(count: int, most: int) -> int:
    return max(LOWEST, round(count * HEIGHT / most)) if count else 0


def _bar(left: int, top: int, height: int) -> str:
    return f"M{left} {top}h{BAR}v{height}h-{BAR}z"


def _words(hours: Sequence[Hour]) -> str:
    ended = [one.complete + one.errored for one in hours]
    failed = sum(one.errored for one in hours)
    if not any(ended):
        return "Nothing ended in the last 24 hours."
    text = f"{sum(ended):,} ended in the last 24 hours, at most {max(ended):,} in an hour."
    if not failed:
        return f"{text} None failed."
    worst = max(hours, key=lambda one: one.errored)
    return f"{text} {failed:,} failed, {worst.errored:,} of them in the hour from {worst.at:%H:%M} UTC."
