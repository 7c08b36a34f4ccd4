"""What happened in workflows over time, for charts: from counts, however many instances there were.

`engine.steer.workflow_counts` keeps the counts. What it has not added to them yet is read as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import lcm
from operator import add
from typing import Any

from django.db import connection

from engine.status.quantiles import quantiles
from engine.steer.clock import database_time
from engine.steer.workflow_counts import SPANS_KEPT

DAY = 1440  # minutes
MOST = 2_000  # spans
BUCKETS = 56
RATIO = 1.44  # of a bucket to the one before

COUNTS = {
    "started": "started",
    "complete": "complete",
    "errored": "errored",
    "terminated": "terminated",
    "retries": "retried",
}
HISTOGRAMS = {"latency": "began", "steps": "succeeded"}


def _sums(column: str) -> str:
    return f"concat_ws(' ', {', '.join(f'sum({column}[{n}])' for n in range(1, BUCKETS + 1))})"


# The sums of each span and of each workflow, and the changes that are not in them yet. By element: to unnest the
# buckets took ten times as long. As text: to read arrays took longer than to add them up.
_SERIES = f"""
    SELECT beginning, workflow, NULL AS what, NULL AS bucket,
        ARRAY[{", ".join(f"sum({column})" for column in COUNTS)}]::bigint[],
        {", ".join(_sums(column) for column in HISTOGRAMS)}
    FROM (
        SELECT *, date_bin(%(length)s, at, %(since)s) AS beginning FROM engine_workflow_span
        WHERE minutes = %(minutes)s AND at >= %(since)s AND at < %(until)s AND workflow = ANY (%(names)s)
    ) AS spans
    GROUP BY GROUPING SETS ((beginning), (workflow))
    UNION ALL
    SELECT date_bin(%(length)s, at, %(since)s), workflow, what, bucket, ARRAY[sum(amount)]::bigint[], NULL, NULL
    FROM engine_workflow_count_delta
    WHERE at >= %(since)s AND at < %(until)s AND workflow = ANY (%(names)s)
    GROUP BY 1, 2, 3, 4
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Quantiles:
    """How long at most half of them took, and 95 of 100: each within 20 %, from 1 ms to 8 days."""

    p50: timedelta
    p95: timedelta


@dataclass(frozen=True, slots=True)
class Figures:
    """What happened within a time. Each restart starts once more, and each generation ends once."""

    started: int = 0
    """Generations that were started, by when that was asked for: also what was started for later."""
    complete: int = 0
    errored: int = 0
    terminated: int = 0
    retries: int = 0
    """Attempts at steps after the first one, counted when they end."""
    latency: Quantiles | None = None
    """From when they were due until a worker first ran them, of those that began; None if none did."""
    steps: Quantiles | None = None
    """How long successful attempts at steps took, by when they ended; None if there were none."""


@dataclass(frozen=True, slots=True)
class Series:
    """Figures by time: `spans[n]` is about the time from `at[n]` on, `span` long. The last one may not be over."""

    span: timedelta
    at: tuple[datetime, ...]
    spans: tuple[Figures, ...]
    total: Figures
    by_workflow: Mapping[str, Figures]
    """The whole time of each workflow that was asked for, also if nothing happened in it."""


def series(
    names: Sequence[str], *, since: datetime, until: datetime, span: timedelta, now: datetime | None = None
) -> Series:
    """Return what happened in these workflows together, in spans, with one query.

    `names` are what the person may see, or one of them. Spans begin at multiples of their length after midnight, UTC:
    the first one contains `since`, and the last one the moment before `until`. `span` must be a number of minutes that
    divides a day. What is older is kept less finely (see `SPANS_KEPT`): if `span` is shorter than what is left of
    `since`, the spans are longer (see `Series.span`). `now` is by default the database's time. Raise ValueError if
    `span` does not divide a day, or if there would be more than 2,000 spans.
    """
    minutes = _minutes(span, finest=_finest(since, now or database_time()))
    length = timedelta(minutes=minutes)
    at = _beginnings(since.astimezone(UTC), until.astimezone(UTC), length)
    sums = _Sums()
    if at:
        values: dict[str, Any] = {
            "names": list(names),
            "since": at[0],
            "until": at[-1] + length,
            "length": length,
            "minutes": max(kept for kept in SPANS_KEPT if minutes % kept == 0),
        }
        with connection.cursor() as cursor:
            cursor.execute(_SERIES, values)
            sums.add_all(cursor.fetchall())
    return Series(
        span=length,
        at=at,
        spans=tuple(sums.of_span[beginning].told() for beginning in at),
        total=_together(sums.of_workflow.values()).told(),
        by_workflow={name: sums.of_workflow[name].told() for name in names},
    )


def _finest(since: datetime, now: datetime) -> int:
    return next((minutes for minutes, kept in SPANS_KEPT.items() if since >= now - kept), DAY)


def _minutes(span: timedelta, *, finest: int) -> int:
    minutes, rest = divmod(span, timedelta(minutes=1))
    if rest or minutes < 1 or DAY % minutes:
        raise ValueError(f"A span must be a number of minutes that divides a day, not {span}.")
    return lcm(minutes, finest)


def _beginnings(since: datetime, until: datetime, length: timedelta) -> tuple[datetime, ...]:
    midnight = since.replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight + (since - midnight) // length * length
    count = max(0, -(-(until - first) // length))
    if count > MOST:
        raise ValueError(f"There would be {count:,} spans; choose longer ones: {MOST:,} are allowed.")
    return tuple(first + n * length for n in range(count))


@dataclass(slots=True)
class _Sum:
    counts: list[int] = field(default_factory=lambda: [0] * len(COUNTS))
    histograms: list[list[int]] = field(default_factory=lambda: [[0] * BUCKETS for _ in HISTOGRAMS])

    def add(self, counts: Sequence[int], histograms: Sequence[Sequence[int]]) -> None:
        self.counts = [*map(add, self.counts, counts)]
        self.histograms = [
            [*map(add, own, other)] for own, other in zip(self.histograms, histograms, strict=True)
        ]

    def add_change(self, what: str, bucket: int, amount: int) -> None:
        for n, counted in enumerate(COUNTS.values()):
            self.counts[n] += amount if counted == what else 0
        for n, counted in enumerate(HISTOGRAMS.values()):
            if counted == what and bucket >= 0:
                self.histograms[n][min(bucket // 2, BUCKETS - 1)] += amount

    def told(self) -> Figures:
        # An end that was counted before the counts were, and is taken back, leaves less than nothing.
        counts = {name: max(0, amount) for name, amount in zip(COUNTS, self.counts, strict=True)}
        latency, steps = map(_quantiles, self.histograms)
        return Figures(**counts, latency=latency, steps=steps)


@dataclass(slots=True)
class _Sums:
    """The rows that were read, by span and by workflow."""

    of_span: defaultdict[datetime, _Sum] = field(default_factory=lambda: defaultdict(_Sum))
    of_workflow: defaultdict[str, _Sum] = field(default_factory=lambda: defaultdict(_Sum))

    def add_all(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for beginning, workflow, what, bucket, amounts, *histograms in rows:
            for key, sums in ((beginning, self.of_span), (workflow, self.of_workflow)):
                if key is not None and what is None:
                    sums[key].add(amounts, [[*map(int, one.split())] for one in histograms])
                elif key is not None:
                    sums[key].add_change(what, bucket, *amounts)


def _together(sums: Iterable[_Sum]) -> _Sum:
    total = _Sum()
    for one in sums:
        total.add(one.counts, one.histograms)
    return total


def _quantiles(histogram: Sequence[int]) -> Quantiles | None:
    found = quantiles(dict(enumerate(histogram)), (0.5, 0.95), ratio=RATIO)
    return Quantiles(*found) if found else None
