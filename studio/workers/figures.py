"""The four figures above the workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from engine.values.durations import format_duration
from studio.workers.headline import many, number
from studio.workers.waiting import Waiting, rate

UNKNOWN = "–"


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with what it counts, and a note."""

    title: str
    value: str
    note: str


def figures(
    queues: Sequence[Waiting] | None,
    wait: timedelta | None,
    steps_per_minute: float | None,
    *,
    failed: str = "",
    pace_failed: str = "",
) -> list[Figure]:
    """Return the figures. What could not be read has no number."""
    waiting = sum((one.count for one in queues or ()), start=0)
    paused = sum((one.paused for one in queues or ()), start=0)
    lost = "could not be read" if failed else ""
    no_steps = "could not be read" if pace_failed else "measuring"
    return [
        Figure(
            "Wait before an instance begins, p95",
            UNKNOWN if wait is None else format_duration(wait),
            lost or ("last 5 minutes" if wait is not None else "none began in 5 minutes"),
        ),
        Figure(
            "Steps a minute",
            UNKNOWN if steps_per_minute is None else rate(steps_per_minute),
            no_steps if steps_per_minute is None else "last 5 minutes",
        ),
        Figure("Waiting for a slot", UNKNOWN if lost else number(waiting), lost or _most(queues or ())),
        Figure("Held by a pause", UNKNOWN if lost else number(paused), lost or _paused(queues or ())),
    ]


def _most(queues: Sequence[Waiting]) -> str:
    """Name the workflow that most of the waiting ones are of."""
    found = [one for one in queues if one.count]
    if not found:
        return "nothing waits"
    most = max(found, key=lambda one: one.count)
    return f"all {most.workflow}" if len(found) == 1 else f"{number(most.count)} of them {most.workflow}"


def _paused(queues: Sequence[Waiting]) -> str:
    count = sum(bool(one.paused) for one in queues)
    return f"of {many(count, 'workflow')}" if count else "nothing is paused"
