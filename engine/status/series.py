"""What happened in workflows over time, for charts: from counts that the engine keeps, however many instances there were.

The counts come from `engine.steer.workflow_counts`. What it has not added to them yet is read as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Quantiles:
    """How long at most half of them took, and 95 of 100: each within 20 %."""

    p50: timedelta
    p95: timedelta


@dataclass(frozen=True, slots=True)
class Figures:
    """What happened within a time. Each restart starts once more, and each generation ends once."""

    started: int = 0
    """First runs by a worker: one started for later counts when it runs, not when it was asked for."""
    complete: int = 0
    errored: int = 0
    terminated: int = 0
    retries: int = 0
    """Attempts at steps after the first one, counted when they start."""
    latency: Quantiles | None = None
    """From when they were due until a worker ran them, of those that started; None if none did."""
    steps: Quantiles | None = None
    """How long successful attempts at steps took, by when they ended; None if none did."""


@dataclass(frozen=True, slots=True)
class Series:
    """Figures by time: `spans[n]` is about the time from `at[n]` on, `span` long. The last one may not be over."""

    span: timedelta
    at: tuple[datetime, ...]
    spans: tuple[Figures, ...]
    total: Figures
    by_workflow: Mapping[str, Figures] = field(default_factory=dict)
    """The whole time of each workflow that was asked for, also if nothing happened in it."""


def series(names: Sequence[str], *, since: datetime, until: datetime, span: timedelta) -> Series:
    """Return what happened in these workflows together, in spans, with one query.

    `names` are what the person may see, or one of them. Spans begin at multiples of their length after midnight, UTC:
    the first one contains `since`, and the last one the moment before `until`. `span` must be a number of minutes that
    divides a day. What is older is kept less finely (1 minute for 26 hours, 10 minutes for 50 hours, 1 hour for 8 days,
    6 hours for 90 days): if `span` is shorter than what is kept of `since`, the spans are longer (see `Series.span`).
    """
    raise NotImplementedError
