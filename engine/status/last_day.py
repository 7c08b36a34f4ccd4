"""What started and ended in workflows within 24 hours, and how long it took: from counts, however many there were.

`engine.steer.workflow_counts` keeps the counts. What it has not added to them yet is read as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from engine.status.quantiles import quantiles
from engine.steer.clock import database_time

HOURS = 24
RATIO = 1.2  # of a bucket to the one before: see `engine_duration_bucket`

# The hours of the bars, and the minutes before the first of them: the figures are of exactly 24 hours. The usual share
# of failures is that of the 7 days that were over before. Each span is looked up by itself (OFFSET 0 keeps it so): for
# all spans at once, the planner expects too many rows and reads the whole table.
_LAST_DAY = """
    WITH span AS MATERIALIZED (
        SELECT 'hour' AS unit, %(first_hour)s + n * interval '1 hour' AS at, n AS hour FROM generate_series(0, 24) AS n
        UNION ALL
        SELECT 'minute', at, NULL
        FROM generate_series(%(since)s, %(first_hour)s - interval '1 minute', '1 minute') AS at
        UNION ALL
        SELECT 'day', %(midnight)s - n * interval '24 hours', NULL FROM generate_series(1, 7) AS n
    ), found AS (
        SELECT c.workflow, span.unit <> 'day' AS is_of_day, span.hour, c.what,
            CASE WHEN span.unit <> 'day' THEN c.bucket END AS bucket, c.amount
        FROM span CROSS JOIN LATERAL (
            SELECT workflow, what, bucket, amount FROM engine_workflow_count
            WHERE unit = span.unit AND at = span.at AND workflow = ANY (%(names)s) OFFSET 0
        ) AS c
        UNION ALL
        SELECT d.workflow, true, CASE WHEN d.at >= %(first_hour)s
                THEN floor(extract(epoch FROM d.at - %(first_hour)s) / 3600)::int END, d.what, d.bucket, d.amount
        FROM engine_workflow_count_delta d
        WHERE d.at >= %(since)s AND d.workflow = ANY (%(names)s)
    )
    SELECT workflow, is_of_day, grouping(hour) = 0, hour, what, bucket, sum(amount)::bigint FROM found
    GROUP BY GROUPING SETS ((workflow, is_of_day, what, bucket), (workflow, is_of_day, what, hour))
    HAVING grouping(hour) = 1 OR hour IS NOT NULL AND what IN ('complete', 'errored')
"""

# Of the same times, from the rows that have what happened in a span side by side: a tenth as many.
_ENDED = """
    WITH span AS MATERIALIZED (
        SELECT 60 AS minutes, %(first_hour)s + n * interval '1 hour' AS at, true AS is_of_day
        FROM generate_series(0, 24) AS n
        UNION ALL
        SELECT 1, at, true FROM generate_series(%(since)s, %(first_hour)s - interval '1 minute', '1 minute') AS at
        UNION ALL
        SELECT 1440, %(midnight)s - n * interval '24 hours', false FROM generate_series(1, 7) AS n
    ), found AS (
        SELECT s.workflow, span.is_of_day, s.complete, s.errored
        FROM span CROSS JOIN LATERAL (
            SELECT workflow, complete, errored FROM engine_workflow_span
            WHERE minutes = span.minutes AND at = span.at AND workflow = ANY (%(names)s) OFFSET 0
        ) AS s
        UNION ALL
        SELECT workflow, true, CASE WHEN what = 'complete' THEN amount ELSE 0 END,
            CASE WHEN what = 'errored' THEN amount ELSE 0 END
        FROM engine_workflow_count_delta
        WHERE at >= %(since)s AND what IN ('complete', 'errored') AND workflow = ANY (%(names)s)
    )
    SELECT workflow, is_of_day, sum(complete)::bigint, sum(errored)::bigint FROM found GROUP BY 1, 2
"""

# The counters came with a migration. What was there before is not counted.
_COUNTED_SINCE = """
    SELECT applied FROM django_migrations
    WHERE app = 'engine' AND name = '0011_counters' AND applied > clock_timestamp() - interval '24 hours'
      AND EXISTS (
        SELECT FROM (SELECT created_at FROM engine_instance ORDER BY key LIMIT 1) AS oldest WHERE created_at < applied
      )
"""


@dataclass(frozen=True, slots=True)
class Hour:
    """What ended by itself within an hour; the last one is not over."""

    at: datetime
    complete: int = 0
    errored: int = 0


@dataclass(frozen=True, slots=True)
class LastDay:
    """The last 24 hours of a workflow, to the minute. Each restart is a start, and each generation ends once.

    The rate and the durations are of what ended by itself, so not of terminated instances.
    """

    hours: tuple[Hour, ...]
    started: int = 0
    complete: int = 0
    errored: int = 0
    usual_rate: float = 0.0  # over the 7 days that were over when these 24 hours began; 0 if nothing ended
    durations: Mapping[int, int] = field(default_factory=dict)  # how many, by bucket

    @property
    def ended(self) -> int:
        return self.complete + self.errored

    @property
    def rate(self) -> float | None:
        """The share that failed; None if nothing ended."""
        return _share(self.errored, self.ended)

    @property
    def is_unusual(self) -> bool:
        """Whether more failed than usually do in this workflow."""
        return (self.rate or 0.0) > self.usual_rate

    @property
    def p50(self) -> timedelta | None:
        return self.quantile(0.5)

    @property
    def p95(self) -> timedelta | None:
        return self.quantile(0.95)

    def quantile(self, share: float) -> timedelta | None:
        """Return how long at most this share took, within 10 %; None if nothing ended."""
        return next(iter(quantiles(self.durations, [share], ratio=RATIO)), None)


def last_day(names: Sequence[str], *, now: datetime | None = None) -> dict[str, LastDay]:
    """Return the last 24 hours of each of these workflows, with one query after a look at the clock."""
    values = _asked(names, now)
    read = {name: _Read() for name in names}
    for workflow, is_of_day, is_hour, hour, what, bucket, amount in _rows(_LAST_DAY, values):
        read[workflow].add(is_of_day, is_hour, hour, what, bucket, amount)
    return {name: one.told(values["first_hour"]) for name, one in read.items()}


def ends_of_last_day(names: Sequence[str], *, now: datetime | None = None) -> dict[str, LastDay]:
    """Return the same without bars, starts and durations: how many completed and failed, in a sixth of the time."""
    read = {name: _Read() for name in names}
    for workflow, is_of_day, complete, errored in _rows(_ENDED, _asked(names, now)):
        figures = read[workflow].figures if is_of_day else read[workflow].usual
        figures.update(complete=complete, errored=errored)
    return {name: one.figures_told() for name, one in read.items()}


def _asked(names: Sequence[str], now: datetime | None) -> dict[str, Any]:
    since = (now or database_time()).astimezone(UTC).replace(second=0, microsecond=0) - timedelta(days=1)
    return {
        "names": list(names),
        "since": since,
        "first_hour": since.replace(minute=0) + timedelta(hours=1),
        "midnight": since.replace(hour=0, minute=0),
    }


def _rows(statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def counted_since() -> datetime | None:
    """Return since when starts and ends are counted, if that is less than 24 hours and there were some before."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED_SINCE)
        found = cursor.fetchone()
    return None if found is None else found[0]


@dataclass(slots=True)
class _Read:
    """The rows of one workflow."""

    hours: Counter[tuple[int, str]] = field(default_factory=Counter)
    figures: Counter[str] = field(default_factory=Counter)
    usual: Counter[str] = field(default_factory=Counter)
    durations: Counter[int] = field(default_factory=Counter)

    def add(
        self, is_of_day: bool, is_hour: bool, hour: int | None, what: str, bucket: int | None, amount: int
    ) -> None:
        if is_hour and hour is not None:
            self.hours[hour, what] += amount
        elif not is_hour and not is_of_day:
            self.usual[what] += amount
        elif not is_hour:
            self.figures[what] += amount
            if what in ("complete", "errored") and bucket is not None:
                self.durations[bucket] += amount

    def figures_told(self) -> LastDay:
        ended_usually = self.usual["complete"] + self.usual["errored"]
        # An end that was counted before the counts were, and is taken back, leaves less than nothing.
        return LastDay(
            hours=(),
            started=max(0, self.figures["started"]),
            complete=max(0, self.figures["complete"]),
            errored=max(0, self.figures["errored"]),
            usual_rate=_share(self.usual["errored"], ended_usually) or 0.0,
        )

    def told(self, first_hour: datetime) -> LastDay:
        hours = (
            Hour(
                first_hour + timedelta(hours=number),
                max(0, self.hours[number, "complete"]),
                max(0, self.hours[number, "errored"]),
            )
            for number in range(HOURS)
        )
        return replace(self.figures_told(), hours=tuple(hours), durations=self.durations)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole > 0 else None
