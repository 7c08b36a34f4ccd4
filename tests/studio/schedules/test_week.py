"""The week of schedules: what ran, by outcome, and what is to come, in hours that fold."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from engine.models import Instance, ScheduleRow
from engine.steer import audit
from engine.steer.schedules import REFUSED
from studio.schedules import week as of_week
from tests.studio import factories
from tests.studio.display.test_escaping import EVIL, assert_is_text
from tests.studio.schedules.test_schedules import row

pytestmark = pytest.mark.django_db

PAST = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
FUTURE = "2126-W01"  # from Monday, 31 December 2125


def page_of(client: Client, **query: str) -> str:
    answer = client.get("/schedules/", {"view": "week", **query})
    assert answer.status_code == 200
    return answer.content.decode()


def blocks(page: str) -> list[str]:
    """Return the blocks in words, in the order of the tab key."""
    found = re.findall(r'<a class="block [^>]* title="([^"]*)"', page)
    return [re.sub("[\u2066-\u2069]", "", html.unescape(one)) for one in found]


def ran(schedule: ScheduleRow, at: datetime, status: str = "complete", **given: Any) -> Instance:
    fields = {"workflow": schedule.workflow, "started_by": f"schedule {schedule.name}", "created_at": at}
    if status != "queued":
        fields |= {"started_at": at + timedelta(seconds=1)}
    if status in ("complete", "errored", "terminated"):
        fields |= {"finished_at": at + timedelta(seconds=3)}
    return factories.instance(status, **(fields | given))


def address_of(page: str, label: str) -> str:
    (found,) = [
        one for one in re.findall(r'<a class="block .*?</a>', page, re.DOTALL) if label in html.unescape(one)
    ]
    return html.unescape(re.findall(r'href="([^"]+)"', found)[0])


def test_what_ran_says_its_outcome_and_leads_to_its_instance(viewer: Client) -> None:
    schedule = row(paused_at=factories.ago(hours=1), next_at=None)
    good = ran(schedule, PAST + timedelta(hours=9))
    ran(schedule, PAST + timedelta(days=1, hours=9, minutes=2), "errored")
    ran(schedule, PAST + timedelta(days=2, hours=9), "terminated")
    ran(schedule, PAST + timedelta(days=3, hours=9), "running")
    ran(schedule, PAST - timedelta(minutes=1))  # the week before
    factories.instance("complete", workflow=schedule.workflow, created_at=PAST)  # not by a schedule
    page = page_of(viewer, week="2026-W10")
    assert blocks(page) == [
        "Monday 09:00: process-order · mornings, complete",
        "Tuesday 09:02: process-order · mornings, errored",
        "Wednesday 09:00: process-order · mornings, terminated",
        "Thursday 09:00: process-order · mornings, running",
    ]
    assert address_of(page, "Monday") == good.get_absolute_url()
    assert 'class="block s-errored"' in page
    assert "Week 10 · 2 Mar – 8 Mar 2026" in page


def test_runs_of_an_hour_are_one_block_that_leads_to_their_list(viewer: Client) -> None:
    schedule = row("* * * * *", expression="* * * * *", is_declared=False, next_at=None)
    made = [ran(schedule, PAST + timedelta(hours=9, minutes=minute)) for minute in range(10)]
    made += [ran(schedule, PAST + timedelta(hours=9, minutes=minute), "errored") for minute in (58, 59)]
    ran(schedule, PAST + timedelta(hours=10))
    page = page_of(viewer, week="2026-W10")
    assert blocks(page) == [
        "Monday 09:00: 12 times process-order, 2 errored",
        "Monday 10:00: process-order, complete",
    ]
    listed = viewer.get(address_of(page, "12 times")).content.decode()
    assert {one.get_absolute_url() for one in made} == set(
        re.findall(r'href="(/workflows/process-order/instances/[^"]+)"', listed)
    )


def test_what_is_to_come_is_computed_in_the_zone_of_the_schedule(viewer: Client) -> None:
    schedule = row(next_at=datetime(2126, 1, 1, 8, tzinfo=UTC))
    page = page_of(viewer, week=FUTURE, zone="Asia/Kolkata")
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
    assert blocks(page) == [f"{day} 13:30: process-order · mornings, planned" for day in days]
    assert page.count('class="block s-queued coming"') == 5
    assert address_of(page, "Friday") == f"/workflows/process-order/?tab=schedules#sc-{schedule.pk}"


def test_a_paused_one_is_struck_and_said(viewer: Client) -> None:
    row(paused_at=factories.ago(hours=1), next_at=None)
    page = page_of(viewer, week=FUTURE)
    assert blocks(page)[0] == "Monday 08:00: process-order · mornings, paused"
    assert page.count('class="block s-paused coming off"') == 5


def test_one_of_every_minute_has_no_more_than_a_block_for_an_hour(viewer: Client) -> None:
    row("ticks", expression="* * * * *", timezone="UTC")
    found = blocks(page_of(viewer, week=FUTURE))
    assert found == [
        f"{date(2125, 12, 31) + timedelta(days=day):%A} {hour:02}:00: 60 times process-order · ticks, planned"
        for day in range(7)
        for hour in range(24)
    ]


def test_a_day_without_an_hour_and_one_with_an_hour_more(viewer: Client) -> None:
    row("nights", expression="30 2 * * *")
    row("quarters", expression="0,30 * * * *")
    forward = page_of(viewer, week="2127-W13", zone="Europe/Berlin")
    assert "clocks go forward" in forward
    sunday = [one for one in blocks(forward) if one.startswith("Sunday 0")]
    assert sunday[1:4] == [
        "Sunday 01:00: 2 times process-order · quarters, planned",
        "Sunday 03:00: process-order · nights, planned",
        "Sunday 03:00: 2 times process-order · quarters, planned",
    ]
    back = page_of(viewer, week="2127-W43", zone="Europe/Berlin")
    assert "clocks go back" in back
    assert "Sunday 02:00: 4 times process-order · quarters, planned" in blocks(back)
    assert "Sunday 02:30 CEST: process-order · nights, planned" in blocks(back)


def test_a_run_of_this_hour_and_what_is_to_come_of_it_are_one_block(viewer: Client) -> None:
    now = datetime.now(UTC)
    schedule = row("ticks", expression="* * * * *", timezone="UTC", next_at=now + timedelta(minutes=1))
    ran(schedule, now)
    page = page_of(viewer, zone="UTC")
    (present,) = re.findall(r'<li class="hour present">.*?</li>', page, re.DOTALL)
    assert present.count('<a class="block') == 1
    assert f"now, </span>{now:%H}:" in present
    assert 'aria-current="true">This week' in re.sub(r"\s+", " ", page).replace(" >", ">")


def test_what_is_overdue_says_so(viewer: Client) -> None:
    now = datetime.now(UTC)
    row("late", next_at=now - timedelta(minutes=30), expression="0 0 1 1 *")
    begins = now - timedelta(minutes=30)
    week = begins.isocalendar()
    page = page_of(viewer, week=f"{week.year}-W{week.week:02}", zone="UTC")
    assert f"{begins:%A} {begins:%H:%M}: process-order · late, overdue" in blocks(page)


def test_a_refused_start_is_there_with_its_reason(viewer: Client) -> None:
    schedule = row(is_declared=False, next_at=None)
    planned = datetime.now(UTC).replace(second=0, microsecond=0)
    cause = audit.Cause.of("schedule mornings", "customer: is missing")
    data = {"schedule": schedule.name, "planned_at": planned.isoformat()}
    audit.note(REFUSED, schedule.workflow, cause, outcome="denied", data=data)  # as the cluster does
    page = page_of(viewer, zone="UTC")
    assert blocks(page) == [
        f"{planned:%A %H:%M}: process-order · mornings, could not start. customer: is missing"
    ]
    assert 'class="block s-errored"' in page


def test_missed_runs_are_counted_at_the_run_after_them(viewer: Client) -> None:
    schedule = row(is_declared=False, next_at=None, last_missed=3)
    made = ran(schedule, PAST + timedelta(hours=9))
    ScheduleRow.objects.update(last_instance_key=made.key, last_planned_at=made.created_at)
    assert blocks(page_of(viewer, week="2026-W10")) == [
        "Monday 09:00: process-order · mornings, complete, 3 missed before"
    ]


def test_many_in_an_hour_are_counted_and_a_workflow_can_be_chosen(viewer: Client) -> None:
    for number in range(6):
        row(f"plan-{number}", workflow="refund" if number else "process-order")
    page = page_of(viewer, week=FUTURE)
    assert len(blocks(page)) == 5 * of_week.SHOWN
    assert page.count("and 2 more") == 5
    own = page_of(viewer, week=FUTURE, workflow="process-order")
    assert len(blocks(own)) == 5
    assert '<option value="process-order" selected>' in own
    for link in re.findall(r'id="week-\w+" href="([^"]+)"', own):
        assert "workflow=process-order" in html.unescape(link)


def test_weeks_follow_each_other_also_over_a_year(viewer: Client) -> None:
    links = re.findall(r'id="week-\w+" href="([^"]+)"', page_of(viewer, week="2026-W53", zone="UTC"))
    assert [html.unescape(one) for one in links] == [
        "/schedules/?view=week&week=2026-W52&zone=UTC",
        "/schedules/?view=week&zone=UTC",
        "/schedules/?view=week&week=2027-W01&zone=UTC",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("week", week)
            for week in ("2026-W54", "2025-W53", "1999-W01", "9999-W52", "now", "2026-W1", "x" * 90)
        ),
        *(("zone", zone) for zone in ("Moon/Base", "../../etc/passwd", "/etc", "x" * 80)),
        ("workflow", "none"),
        ("region", "eu"),
    ],
)
def test_what_it_does_not_understand_is_named(viewer: Client, name: str, value: str) -> None:
    row()
    page = page_of(viewer, **{name: value})
    (said,) = re.findall(r"<code><bdi>([^<]*)</bdi></code>", page)
    assert f"{name}={value}".startswith(html.unescape(said).rstrip("…"))
    listed = viewer.get("/schedules/", {"week": "2026-W10"}).content.decode()
    assert "<code><bdi>week=2026-W10</bdi></code>" in listed


def test_it_reads_as_often_for_many_schedules_as_for_one(
    viewer: Client, django_assert_max_num_queries: Callable[..., Any]
) -> None:
    for number in range(30):
        ran(row(f"plan-{number}"), PAST + timedelta(hours=number))
    with django_assert_max_num_queries(22):
        page_of(viewer, week="2026-W10")


def test_its_socket_and_its_tab_show_the_same_week(viewer: Client) -> None:
    row()
    page = page_of(viewer, week=FUTURE, zone="Asia/Kolkata", workflow="process-order")
    (topic,) = re.findall(r'hx-ws:connect="[^"?]*\?([^"]+)"', page)
    frame = viewer.get(f"/_f/live/?{html.unescape(topic)}").content.decode()
    assert 'hx-target="#week-day-6"' in frame
    assert blocks(frame) == blocks(page) != []
    tab = viewer.get("/workflows/process-order/?tab=schedules").content.decode()
    assert "/schedules/?view=week&amp;workflow=process-order" in tab


@pytest.mark.parametrize("evil", EVIL, ids=[evil[:16] for evil in EVIL])
def test_names_are_text(viewer: Client, evil: str) -> None:
    schedule = row(evil[:100], next_at=datetime(2126, 1, 1, 8, tzinfo=UTC))
    ran(schedule, PAST + timedelta(hours=9), started_by=f"schedule {evil[:100]}")
    assert_is_text(page_of(viewer, week=FUTURE), evil[:100])
    assert_is_text(page_of(viewer, week="2026-W10"), evil[:100])
