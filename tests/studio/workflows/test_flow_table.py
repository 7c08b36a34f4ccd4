"""The table of workflows on Home and on its own page: the last 24 hours, and what is open now."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from engine.models import WorkflowCountDelta
from engine.status.last_day import HOURS, Hour, ends_of_last_day, last_day
from engine.steer import workflow_counts
from studio.workflows.bars import day_bars
from studio.workflows.table import flow_table, percent, rough
from tests.studio import factories

pytestmark = pytest.mark.django_db

COLUMNS = ["Workflow", "Last 24 hours", "Started", "Failed", "Rate", "p50", "p95", "Open now"]
MIDNIGHT = datetime(2026, 11, 27, tzinfo=UTC)


def happened(workflow: str, *, started: int = 0, complete: int = 0, errored: int = 0, hours: int = 0) -> None:
    """Count starts and ends, each of which took about 2 s."""
    at = factories.ago(hours=hours).replace(second=0, microsecond=0)
    counts = {"started": (-1, started), "complete": (42, complete), "errored": (42, errored)}
    WorkflowCountDelta.objects.bulk_create(
        WorkflowCountDelta(workflow=workflow, at=at, what=what, bucket=bucket, amount=amount)
        for what, (bucket, amount) in counts.items()
        if amount
    )


def table(client: Client, where: str) -> str:
    found = re.search(
        r'<section class="card" id="workflow-table".*?</section>',
        client.get(where).content.decode(),
        re.DOTALL,
    )
    assert found is not None
    return found[0]


def rows(client: Client, where: str = "/") -> dict[str, str]:
    """The text of each row, by workflow, in order."""
    found = re.findall(r'<tr id="w-([^"]+)">(.*?)</tr>', table(client, where), re.DOTALL)
    return {name: " ".join(html.unescape(re.sub(r"<[^>]+>", " ", row)).split()) for name, row in found}


def only(client: Client, workflow: str, where: str = "/") -> str:
    return rows(client, where)[workflow]


def with_instances(*names: str) -> None:
    for name in names:
        factories.instance("complete", workflow=name, finished_at=factories.ago(days=3), **_days_ago(3))


def _days_ago(days: int) -> dict[str, datetime]:
    return {
        "created_at": factories.ago(days=days, minutes=1),
        "started_at": factories.ago(days=days, minutes=1),
    }


@pytest.mark.parametrize("where", ["/", "/workflows/"])
def test_both_pages_have_the_same_columns(operator: Client, where: str) -> None:
    with_instances("pay")
    heads = re.findall(r'<th scope="col"[^>]*>([^<]+)</th>', table(operator, where))
    assert heads == COLUMNS


def test_a_row_says_how_many_started_and_failed_how_long_it_took_and_what_is_open(operator: Client) -> None:
    with_instances("pay")
    happened("pay", started=1_024, complete=970, errored=30)
    factories.instance("running", workflow="pay", **_days_ago(2))
    factories.instance("waiting", workflow="pay", **_days_ago(2))
    found = only(operator, "pay")
    assert "1,024 30 3 % 2.3 s 2.3 s 30 of 1,000 failed · p50 2.3 s · p95 2.3 s" in found
    assert found.endswith("1 running 1 waiting")
    assert 'href="/instances/?query=workflow:pay+status:errored">30</a>' in table(operator, "/")


def test_where_nothing_ended_there_is_no_rate_and_no_duration(operator: Client) -> None:
    with_instances("a")
    happened("a", started=3)
    assert "3 0 – – – 3 started, none ended idle" in only(operator, "a")


def test_failing_workflows_come_first_by_their_failures_then_the_others_by_name(operator: Client) -> None:
    with_instances("a", "b", "c", "d", "e")
    happened("c", complete=9, errored=1)
    happened("d", complete=9, errored=7)
    happened("e", complete=90, errored=1)
    happened("e", complete=9, errored=1, hours=24 * 4)
    workflow_counts.fold()
    found = [*rows(operator, "/workflows/")]
    assert found[:2] == ["d", "c"]
    assert found[2:] == sorted(found[2:])
    assert {"a", "b", "e"} < {*found[2:]}
    assert table(operator, "/workflows/").count("unusual") == 4  # not of e, in which as many fail usually


@pytest.mark.parametrize("is_folded", [False, True])
def test_home_has_the_first_six_of_the_table(operator: Client, is_folded: bool) -> None:
    """It reads how many failed in another way than the table, which has all that is read of each."""
    names = [f"flow-{number}" for number in range(9)]
    with_instances(*names)
    happened("flow-8", complete=9, errored=7)
    happened("flow-7", complete=90, errored=1)
    happened("flow-7", complete=9, errored=1, hours=24 * 4)
    happened("flow-6", errored=8, hours=23)
    happened("flow-5", complete=1, errored=9, hours=25)
    if is_folded:
        workflow_counts.fold()
    whole = rows(operator, "/workflows/")
    assert [*whole][:2] == ["flow-6", "flow-8"]
    assert [*rows(operator)] == [*whole][:6]
    whole_ends, ends = last_day(names), ends_of_last_day(names)
    for name in names:
        shown = [
            (one.complete, one.errored, one.usual_rate, one.is_unusual)
            for one in (whole_ends[name], ends[name])
        ]
        assert shown[0] == shown[1]


def test_home_has_six_and_a_link_to_all(operator: Client) -> None:
    with_instances(*(f"flow-{number}" for number in range(8)))
    total = flow_table(["x", "y"], most=1).total
    assert total == 2
    assert len(rows(operator)) == 6
    shown = len(rows(operator, "/workflows/"))
    assert shown >= 8
    assert f"All {shown} workflows" in table(operator, "/")


def test_the_bars_say_in_words_what_they_show(operator: Client) -> None:
    with_instances("pay")
    assert 'aria-label="Nothing ended in the last 24 hours."' in table(operator, "/")
    happened("pay", complete=20)
    happened("pay", complete=10, errored=5, hours=2)
    at = factories.ago(hours=2)
    assert (
        'aria-label="35 ended in the last 24 hours, at most 20 in an hour. 5 failed, 5 of them in the hour from '
        f'{at:%H}:00 UTC."'
    ) in table(operator, "/")


def test_since_when_is_counted_is_said_on_the_day_after_an_upgrade(operator: Client) -> None:
    with_instances("pay")
    for days_ago, is_said in ((5, False), (0, True)):
        with connection.cursor() as cursor:
            applied = factories.ago(days=days_ago)
            cursor.execute(
                "UPDATE django_migrations SET applied = %s WHERE name = '0011_counters'", [applied]
            )
        assert ("Starts and ends are counted since" in table(operator, "/")) == is_said


def test_the_table_takes_as_many_queries_for_14_workflows_as_for_one(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    names = [f"flow-{number}" for number in range(14)]
    with_instances(*names)
    for name in names:
        happened(name, started=5, complete=3, errored=1)
    for shown in (names[:1], names):
        with django_assert_num_queries(8):
            assert len(flow_table(shown).rows) == len(shown)


# Bars


def hours(**given: tuple[int, int]) -> list[Hour]:
    """Hours with what completed and failed in those that are named, as `h3`."""
    ended = {int(name[1:]): counts for name, counts in given.items()}
    return [Hour(MIDNIGHT + timedelta(hours=n), *ended.get(n, (0, 0))) for n in range(HOURS)]


def heights(path: str) -> list[tuple[int, int]]:
    """The top and the height of each bar."""
    return [(int(top), int(height)) for top, height in re.findall(r"M\d+ (\d+)h8v(\d+)", path)]


def test_failures_stand_above_the_good_runs_with_a_pixel_of_air() -> None:
    bars = day_bars(hours(h3=(30, 10)))
    ((good_top, good),) = heights(bars.complete)
    ((bad_top, bad),) = heights(bars.errored)
    assert good_top + good == 28
    assert bad_top + bad == good_top - 1
    assert bad == 7
    assert bad_top >= 0


def test_an_empty_hour_is_a_line_of_2_pixels() -> None:
    bars = day_bars(hours(h0=(1, 0)))
    assert heights(bars.none) == [(26, 2)] * 23


def test_each_has_its_own_scale_but_one_run_does_not_look_like_a_flood() -> None:
    assert heights(day_bars(hours(h0=(100, 0), h1=(50, 0))).complete) == [(0, 28), (14, 14)]
    assert heights(day_bars(hours(h0=(1, 0))).complete) == [(24, 4)]


def test_one_failure_among_many_runs_is_seen() -> None:
    bars = day_bars(hours(h0=(10_000, 1)))
    assert heights(bars.errored) == [(0, 2)]
    assert heights(bars.complete) == [(3, 25)]


# Words


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, ""),
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.029, "2.9 %"),
        (0.002, "0.2 %"),
        (0.0001, "<0.1 %"),
        (0.03, "3 %"),
        (0.996, "100 %"),
    ],
)
def test_shares(share: float | None, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0011, "1 ms"),
        (0.1834, "180 ms"),
        (2.14, "2.1 s"),
        (43.4, "43 s"),
        (191, "3 m 10 s"),
        (2_460, "41 m"),
        (32_400, "9 h"),
        (9_300, "2 h 40 m"),
        (172_800, "2 d"),
        (6 * 86_400 + 9_000, "6 d"),
        (30 * 86_400 + 9_000, "30 d"),
    ],
)
def test_durations_are_as_rough_as_they_are_counted(seconds: float, text: str) -> None:
    assert rough(timedelta(seconds=seconds)) == text


def test_no_duration_is_no_text() -> None:
    assert rough(None) == ""
