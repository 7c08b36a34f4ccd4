"""What pages tell of the last 24 hours of workflows: bars, figures and durations, from counts only."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from pytest_django import DjangoAssertNumQueries

from engine.models import WorkflowCountDelta
from engine.status.last_day import LastDay, counted_since, last_day
from engine.steer import workflow_counts
from tests.integration.rows import row_of

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 27, 3, 12, 40, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def happened(at: datetime, what: str, amount: int = 1, *, bucket: int = -1, workflow: str = "pay") -> None:
    WorkflowCountDelta.objects.create(
        workflow=workflow, at=at.replace(second=0), what=what, bucket=bucket, amount=amount
    )


def fold() -> None:
    workflow_counts.fold(now=NOW)


def told(name: str = "pay") -> LastDay:
    return last_day([name], now=NOW)[name]


def test_the_bars_are_the_present_hour_and_the_23_before_it() -> None:
    happened(NOW, "complete", 3, bucket=7)
    happened(NOW - 23 * HOUR, "errored", 2, bucket=7)
    found = told()
    assert [one.at for one in found.hours] == [
        datetime(2026, 11, 26, 4, tzinfo=UTC) + number * HOUR for number in range(24)
    ]
    assert (found.hours[23].complete, found.hours[0].errored) == (3, 2)
    assert sum(one.complete + one.errored for one in found.hours) == 5


@pytest.mark.parametrize("is_folded", [False, True])
def test_the_figures_are_of_24_hours_to_the_minute(is_folded: bool) -> None:
    inside, outside = NOW - DAY, NOW - DAY - MINUTE
    for at in (NOW, inside, outside):
        happened(at, "started")
        happened(at, "errored", bucket=7)
        happened(at, "complete", 3, bucket=7)
    if is_folded:
        fold()
    found = told()
    assert (found.started, found.complete, found.errored) == (2, 6, 2)
    assert (found.ended, found.rate) == (8, 0.25)
    assert sum(one.errored for one in found.hours) == 1  # the minutes before the first bar are not in it


def test_what_is_not_added_up_yet_is_told_once() -> None:
    happened(NOW, "started", 2)
    fold()
    happened(NOW, "started", 3)
    assert told().started == 5


def test_terminated_instances_count_neither_as_good_nor_as_failed() -> None:
    happened(NOW, "terminated", 5, bucket=90)
    happened(NOW, "complete", bucket=7)
    found = told()
    assert (found.ended, found.rate, found.durations) == (1, 0.0, {7: 1})


def test_durations_are_told_within_10_percent() -> None:
    for seconds, amount in ((2.1, 90), (9.4, 10)):
        with connection.cursor() as cursor:
            cursor.execute("SELECT engine_duration_bucket(%s * interval '1 second')", [seconds])
            (bucket,) = cursor.fetchone()
        happened(NOW, "complete", amount, bucket=bucket)
    found = told()
    assert found.p50 is not None
    assert found.p95 is not None
    assert found.p50.total_seconds() == pytest.approx(2.1, rel=0.1)
    assert found.p95.total_seconds() == pytest.approx(9.4, rel=0.1)
    assert found.quantile(0.9) == found.p50


def test_a_failure_is_unusual_only_above_the_share_of_the_7_days_before() -> None:
    happened(NOW, "errored", 2, bucket=7)
    happened(NOW, "complete", 8, bucket=7)
    assert told().is_unusual
    for days in range(2, 9):
        happened(NOW - days * DAY, "errored", 1, bucket=7)
        happened(NOW - days * DAY, "complete", 3, bucket=7)
    fold()
    found = told()
    assert (found.rate, found.usual_rate, found.is_unusual) == (0.2, 0.25, False)
    happened(NOW - 9 * DAY, "complete", 1_000, bucket=7)
    happened(NOW - DAY - HOUR, "complete", 1_000, bucket=7)  # of a day that was not over
    fold()
    assert told().usual_rate == 0.25


def test_nothing_is_told_of_a_workflow_in_which_nothing_happened_nor_of_others() -> None:
    happened(NOW, "errored", bucket=7, workflow="other")
    fold()
    happened(NOW, "errored", bucket=7, workflow="other")
    found = told()
    assert (found.started, found.ended, found.rate, found.p50, found.is_unusual) == (0, 0, None, None, False)
    assert len(found.hours) == 24
    assert last_day([], now=NOW) == {}


def test_an_end_of_before_the_counts_that_is_taken_back_leaves_nothing_negative() -> None:
    happened(NOW - HOUR, "errored", -1, bucket=7)
    found = told()
    assert (found.errored, found.hours[22].errored, found.p50, found.rate) == (0, 0, None, None)


def test_one_query_tells_it_of_14_workflows_and_reads_only_the_last_days(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    names = [f"flow-{number}" for number in range(14)]
    _fill(names)
    with django_assert_num_queries(1):
        found = last_day(names, now=NOW)
    assert all(one.ended > 0 for one in found.values())
    spent = []
    for _ in range(5):
        began = time.process_time()
        last_day(names, now=NOW)
        spent.append(time.process_time() - began)
    assert min(spent) < 0.05  # of this process: a few ms, if the database adds up


def _fill(names: list[str]) -> None:
    """Counts of 60 days, with ten durations in each hour."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO engine_workflow_count (unit, at, workflow, what, bucket, amount)
            SELECT span.unit, date_trunc(span.unit, moment, 'UTC'), name, kind.what, kind.bucket, 5
            FROM (VALUES ('hour', interval '60 days', interval '1 hour'), ('day', '60 days', '1 day'),
                ('minute', '25 hours', '1 minute')) AS span (unit, kept, every)
            CROSS JOIN LATERAL generate_series(
                %(now)s - kept, CASE unit WHEN 'minute' THEN %(now)s - interval '23 hours' ELSE %(now)s END, every
            ) AS moment
            CROSS JOIN unnest(%(names)s::text[]) AS name
            CROSS JOIN (SELECT 'started' AS what, -1 AS bucket UNION ALL SELECT 'errored', 40
                UNION ALL SELECT 'complete', generate_series(30, 38)) AS kind
            """,
            {"now": NOW, "names": names},
        )
        cursor.execute("ANALYZE engine_workflow_count")


def test_it_is_said_since_when_is_counted_if_there_were_instances_before() -> None:
    assert counted_since() is None
    row_of()
    assert counted_since() is None
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE django_migrations SET applied = clock_timestamp() + interval '1 second'"
            " WHERE app = 'engine' AND name = '0011_counters' RETURNING applied"
        )
        (applied,) = cursor.fetchone()
    assert counted_since() == applied
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE django_migrations SET applied = clock_timestamp() - interval '25 hours'"
            " WHERE app = 'engine' AND name = '0011_counters'"
        )
    row_of(id="old", created_at=NOW - 30 * DAY)
    assert counted_since() is None
