"""What charts tell of workflows over time: counts of outcomes, retries, latencies and durations, from counts only."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from pytest_django import DjangoAssertNumQueries

from engine.models import WorkflowCountDelta, WorkflowSpan
from engine.status.series import Figures, Series, series
from engine.steer import workflow_counts

pytestmark = pytest.mark.django_db

NOW = datetime.now(UTC).replace(second=40)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
SECOND = 38  # the bucket of durations round one second


def happened(at: datetime, what: str, amount: int = 1, *, bucket: int = -1, workflow: str = "pay") -> None:
    WorkflowCountDelta.objects.create(
        workflow=workflow, at=at.replace(second=0), what=what, bucket=bucket, amount=amount
    )


def fold() -> None:
    workflow_counts.fold(now=NOW)


def told(
    ago: timedelta, span: timedelta, *names: str, until: datetime = NOW + timedelta(seconds=1)
) -> Series:
    return series(names or ["pay"], since=NOW - ago, until=until, span=span, now=NOW)


def test_an_hour_is_told_by_the_minute_and_the_present_minute_is_the_last() -> None:
    happened(NOW, "complete", 3, bucket=7)
    happened(NOW - HOUR, "errored", 2, bucket=7)
    happened(NOW - HOUR - MINUTE, "errored", 5, bucket=7)
    found = told(HOUR, MINUTE)
    first = NOW.replace(second=0, microsecond=0) - HOUR
    assert found.at == tuple(first + n * MINUTE for n in range(61))
    assert (found.spans[60], found.spans[0]) == (Figures(complete=3), Figures(errored=2))
    assert found.spans[1:60] == (Figures(),) * 59
    assert found.total == Figures(complete=3, errored=2)


@pytest.mark.parametrize(
    ("ago", "span"),
    [
        (HOUR, MINUTE),
        (6 * HOUR, 5 * MINUTE),
        (DAY, 10 * MINUTE),
        (7 * DAY, HOUR),
        (30 * DAY, 6 * HOUR),
        (90 * DAY, 6 * HOUR),
        (90 * DAY, DAY),
    ],
)
def test_each_range_tells_the_same_before_and_after_the_changes_are_added_up(
    ago: timedelta, span: timedelta
) -> None:
    for at in (NOW, NOW - ago / 2, NOW - ago):
        happened(at, "started", 2)
        happened(at, "began", 2, bucket=SECOND)
        happened(at, "succeeded", 9, bucket=SECOND + 12)
        happened(at, "retried", 4)
        happened(at, "complete", bucket=60)
        happened(at, "terminated", bucket=60)
    before = told(ago, span)
    fold()
    assert not WorkflowCountDelta.objects.exists()
    workflow_counts.purge(now=NOW)
    found = told(ago, span)
    assert found == before
    assert found.span == span
    assert [n for n, one in enumerate(found.spans) if one.started == 2][::2] == [0, len(found.at) - 1]
    assert (found.total.started, found.total.retries, found.total.complete, found.total.terminated) == (
        6,
        12,
        3,
        3,
    )


def test_durations_are_within_20_percent_of_what_was_counted_over_all_workflows_together() -> None:
    for seconds, amount in ((0.004, 50), (1.0, 44), (30.0, 6)):
        for workflow in ("pay", "ship"):
            happened(NOW, "began", amount, bucket=_bucket(seconds), workflow=workflow)
    for folded in (False, True):
        if folded:
            fold()
        latency = told(HOUR, MINUTE, "pay", "ship").spans[-1].latency
        assert latency is not None
        assert latency.p50.total_seconds() == pytest.approx(0.004, rel=0.2)
        assert latency.p95.total_seconds() == pytest.approx(30.0, rel=0.2)


def _bucket(seconds: float) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT engine_duration_bucket(%s * interval '1 second')", [seconds])
        return int(cursor.fetchone()[0])


@pytest.mark.parametrize("seconds", [0.0, 0.0001, 9e6])
def test_durations_out_of_range_are_at_its_ends(seconds: float) -> None:
    happened(NOW, "succeeded", bucket=_bucket(seconds))
    before = told(HOUR, MINUTE)
    fold()
    steps = told(HOUR, MINUTE).total.steps
    assert steps == before.total.steps
    assert steps is not None
    assert steps.p95 == (timedelta(milliseconds=1.2) if seconds < 1 else timedelta(milliseconds=1.44**55.5))


def test_only_the_workflows_that_were_asked_for_are_told() -> None:
    for workflow in ("pay", "ship", "secret"):
        happened(NOW, "complete", bucket=7, workflow=workflow)
        fold()
        happened(NOW, "errored", bucket=7, workflow=workflow)
    found = told(HOUR, MINUTE, "pay", "idle")
    assert found.total == found.spans[-1] == Figures(complete=1, errored=1)
    assert found.by_workflow == {"pay": Figures(complete=1, errored=1), "idle": Figures()}
    nothing = series([], since=NOW - HOUR, until=NOW, span=MINUTE, now=NOW)
    assert (nothing.total, nothing.by_workflow, {*nothing.spans}) == (Figures(), {}, {Figures()})


def test_spans_begin_at_multiples_of_their_length_in_utc_whatever_the_zone() -> None:
    """Berlin goes back to winter time on 25 October: the night has 25 hours there, and 24 here."""
    since = datetime.fromisoformat("2026-10-24T15:00:00+02:00")
    until = datetime.fromisoformat("2026-10-26T15:00:00+01:00")
    found = series(["pay"], since=since, until=until, span=6 * HOUR, now=NOW)
    assert found.at == tuple(datetime(2026, 10, 24, 12, tzinfo=UTC) + n * 6 * HOUR for n in range(9))


def test_an_end_that_is_taken_back_is_taken_back_where_it_was_counted() -> None:
    happened(NOW - 2 * MINUTE, "errored", bucket=7)
    fold()
    happened(NOW - 2 * MINUTE, "errored", -1, bucket=7)
    happened(NOW, "errored", bucket=9)
    for folded in (False, True):
        if folded:
            fold()
        found = told(HOUR, MINUTE)
        assert (found.spans[-3], found.spans[-1]) == (Figures(), Figures(errored=1))


def test_what_is_kept_less_finely_is_told_in_longer_spans() -> None:
    assert told(26 * HOUR, MINUTE).span == MINUTE
    assert told(27 * HOUR, MINUTE).span == 10 * MINUTE
    assert told(27 * HOUR, 15 * MINUTE).span == 30 * MINUTE
    assert told(8 * DAY, 10 * MINUTE).span == HOUR
    assert told(9 * DAY, HOUR).span == 6 * HOUR
    assert told(200 * DAY, MINUTE).span == DAY


def test_spans_that_do_not_fit_are_refused() -> None:
    for span in (timedelta(seconds=90), timedelta(0), 7 * MINUTE, 2 * DAY):
        with pytest.raises(ValueError, match="divides a day"):
            told(HOUR, span)
    with pytest.raises(ValueError, match="choose longer ones"):
        told(9 * 365 * DAY, DAY)
    assert told(-HOUR, MINUTE).spans == ()


def test_spans_are_deleted_when_finer_ones_are_not_needed_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow_counts, "BATCH", 2)
    for ago in (HOUR, 27 * HOUR, 51 * HOUR, 9 * DAY, 92 * DAY):
        for minutes in workflow_counts.SPANS_KEPT:
            _span(minutes, NOW - ago)
    workflow_counts.purge(now=NOW)
    kept = {
        minutes: WorkflowSpan.objects.filter(minutes=minutes).count() for minutes in (1, 10, 60, 360, 1440)
    }
    assert kept == {1: 1, 10: 2, 60: 3, 360: 4, 1440: 4}


def test_what_would_be_deleted_soon_is_not_added() -> None:
    for ago in (HOUR, 27 * HOUR, 51 * HOUR, 9 * DAY, 92 * DAY):
        happened(NOW - ago, "began", bucket=7)
    fold()
    added = {minutes: WorkflowSpan.objects.filter(minutes=minutes).count() for minutes in (1, 10, 60)}
    assert added == {1: 1, 10: 2, 60: 3}
    assert {one.minutes for one in WorkflowSpan.objects.filter(at__lt=NOW - 8 * DAY)} == {360, 1440}
    assert not WorkflowSpan.objects.filter(at__lt=NOW - 91 * DAY).exists()


def _span(minutes: int, at: datetime) -> None:
    counts = dict.fromkeys(("started", "complete", "errored", "terminated", "retries"), 1)
    WorkflowSpan.objects.create(minutes=minutes, at=at, workflow="pay", latency=[], steps=[], **counts)


def test_90_days_of_40_workflows_are_one_short_query(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    names = [f"workflow {number}" for number in range(40)]
    _fill(names)
    with django_assert_num_queries(1):
        found = told(90 * DAY, DAY, *names)
    assert found.spans[3].started == 40 * 100
    assert found.total.started == 91 * 40 * 100
    assert found.by_workflow["workflow 7"].started == 91 * 100
    spent = []
    for _ in range(5):
        began = time.process_time()
        told(90 * DAY, DAY, *names)
        spent.append(time.process_time() - began)
    assert min(spent) < 0.05  # of this process: the database adds up


def _fill(names: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO engine_workflow_span
                (minutes, at, workflow, started, complete, errored, terminated, retries, latency, steps)
            SELECT minutes, at, name, 100, 90, 5, 5, 3,
                array_cat(array_fill(3, ARRAY[20]), array_fill(0, ARRAY[36])), array_fill(9, ARRAY[56])
            FROM (VALUES (60, interval '8 days', interval '1 hour'), (360, '91 days', '6 hours'),
                (1440, '91 days', '1 day')) AS span (minutes, kept, every)
            CROSS JOIN LATERAL generate_series(date_trunc('day', %(now)s, 'UTC') - kept, %(now)s, every) AS at
            CROSS JOIN unnest(%(names)s::text[]) AS name
            """,
            {"now": NOW, "names": names},
        )
        cursor.execute("ANALYZE engine_workflow_span")
