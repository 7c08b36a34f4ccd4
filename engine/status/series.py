"""What happened in workflows over time, for charts: from counts, however many instances there were.

`engine.steer.workflow_counts` keeps the counts. What it has not added to them yet is read as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import lcm
from typing import Any

from django.db import connection

from engine.status.quantiles import quantile
from engine.steer.clock import database_time
from engine.steer.workflow_counts import SPANS_KEPT

DAY = 1440  # minutes
MOST = 2_000  # spans
BUCKETS = 56
RATIO = 1.44  # of a bucket to the one before

COUNTS = {
    "started": "began",
    "complete": "complete",
    "errored": "errored",
    "terminated": "terminated",
    "retries": "retried",
}
HISTOGRAMS = {"latency": "began", "steps": "succeeded"}


def _sums(column: str) -> str:
    return f"ARRAY[{', '.join(f'sum({column}[{n}])' for n in range(1, BUCKETS + 1))}]::bigint[]"


# The sums of each span and of each workflow, and the changes that are not in them yet. By element: to unnest the
# buckets took ten times as long.
_SERIES = f"""
    SELECT n, workflow, NULL AS what, NULL AS bucket,
        ARRAY[{", ".join(f"sum({column})" for column in COUNTS)}]::bigint[],
        {", ".join(_sums(column) for column in HISTOGRAMS)}
    FROM (
        SELECT *, floor(extract(epoch FROM at - %(since)s) / %(seconds)s)::integer AS n FROM engine_workflow_span
        WHERE minutes = %(minutes)s AND at >= %(since)s AND at < %(until)s AND workflow = ANY (%(names)s)
    ) AS spans
    GROUP BY GROUPING SETS ((n), (workflow))
    UNION ALL
    SELECT floor(extract(epoch FROM at - %(since)s) / %(seconds)s)::integer, workflow, what, bucket,
        ARRAY[sum(amount)]::bigint[], NULL, NULL
    FROM engine_workflow_count_delta
    WHERE at >= %(since)s AND at < %(until)s AND workflow = ANY (%(names)s) AND what <> 'started'
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
    """First runs by a worker: what was started for later counts when it runs, not when it was asked for."""
    complete: int = 0
    errored: int = 0
    terminated: int = 0
    retries: int = 0
    """Attempts at steps after the first one, counted when they begin."""
    latency: Quantiles | None = None
    """From when they were due until a worker ran them, of those that started; None if none did."""
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
            "seconds": minutes * 60,
            "minutes": max(kept for kept in SPANS_KEPT if minutes % kept == 0),
        }
        with connection.cursor() as cursor:
            cursor.execute(_SERIES, values)
            sums.add_all(cursor.fetchall())
    return Series(
        span=length,
        at=at,
        spans=tuple(sums.of_span[n].told() for n in range(len(at))),
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
    counts: Counter[str] = field(default_factory=Counter)
    histograms: dict[str, Counter[int]] = field(
        default_factory=lambda: {name: Counter() for name in HISTOGRAMS}
    )

    def add(self, counts: Mapping[str, int], histograms: Mapping[str, Mapping[int, int]]) -> None:
        self.counts.update(counts)
        for name, amounts in histograms.items():
            self.histograms[name].update(amounts)

    def told(self) -> Figures:
        # An end that was counted before the counts were, and is taken back, leaves less than nothing.
        return Figures(
            **{name: max(0, self.counts[name]) for name in COUNTS},
            latency=_quantiles(self.histograms["latency"]),
            steps=_quantiles(self.histograms["steps"]),
        )


@dataclass(slots=True)
class _Sums:
    """The rows that were read, by span and by workflow."""

    of_span: defaultdict[int, _Sum] = field(default_factory=lambda: defaultdict(_Sum))
    of_workflow: defaultdict[str, _Sum] = field(default_factory=lambda: defaultdict(_Sum))

    def add_all(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for n, workflow, what, bucket, amounts, *arrays in rows:
            if what is None:
                read = dict(zip(COUNTS, amounts, strict=True)), _read(arrays)
            else:
                read = _change(what, bucket, amounts[0])
            if n is not None:
                self.of_span[n].add(*read)
            if workflow is not None:
                self.of_workflow[workflow].add(*read)


def _read(arrays: Sequence[Sequence[int]]) -> dict[str, dict[int, int]]:
    return {
        name: {n: amount for n, amount in enumerate(array) if amount}
        for name, array in zip(HISTOGRAMS, arrays, strict=True)
    }


def _change(what: str, bucket: int, amount: int) -> tuple[dict[str, int], dict[str, dict[int, int]]]:
    wide = min(bucket // 2, BUCKETS - 1)
    return (
        {name: amount for name, counted in COUNTS.items() if counted == what},
        {name: {wide: amount} for name, counted in HISTOGRAMS.items() if counted == what and bucket >= 0},
    )


def _together(sums: Iterable[_Sum]) -> _Sum:
    total = _Sum()
    for one in sums:
        total.add(one.counts, one.histograms)
    return total


def _quantiles(amounts: Mapping[int, int]) -> Quantiles | None:
    p50, p95 = (quantile(amounts, share, ratio=RATIO) for share in (0.5, 0.95))
    return None if p50 is None or p95 is None else Quantiles(p50, p95)
