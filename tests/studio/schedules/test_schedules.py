"""Schedules in the Studio: when they fire next, what they started, and what an operator does to them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from engine.declare.schedules import DeclaredSchedule
from engine.models import Audit, Instance, ScheduleRow
from engine.values.cron import Cron
from engine.values.identity import new_instance_id
from studio.schedules import queries as timetable
from tests.studio import factories
from tests.studio.display.test_escaping import EVIL, assert_is_text

pytestmark = pytest.mark.django_db

GOOD = {"customer": "Ana", "items": [{"sku": "a-1", "quantity": 2}]}


def row(name: str = "mornings", workflow: str = "process-order", **given: Any) -> ScheduleRow:
    fields: dict[str, Any] = {
        "expression": "0 9 * * 1-5",
        "timezone": "Europe/Berlin",
        "params": GOOD,
        "next_at": datetime.now(UTC) + timedelta(hours=3),
    }
    return ScheduleRow.objects.create(workflow=workflow, name=name, **(fields | given))


def page_of(client: Client, where: str = "/schedules/") -> str:
    answer = client.get(where)
    assert answer.status_code == 200
    return answer.content.decode()


def line_of(page: str, schedule: ScheduleRow) -> str:
    return page.split(f'id="sc-{schedule.pk}"')[1].split("</tr>")[0]


def act(client: Client, schedule: ScheduleRow, action: str, **given: str) -> tuple[int, str]:
    answer = client.post(f"/schedules/{schedule.pk}/{action}/", {"token": new_instance_id()} | given)
    return answer.status_code, answer.content.decode()


def test_it_tells_the_next_five_in_the_zone_of_the_schedule(viewer: Client) -> None:
    planned = datetime(2126, 1, 4, 8, 0, tzinfo=UTC)  # a Friday
    schedule = row(next_at=planned)
    line = line_of(page_of(viewer), schedule)
    there = re.findall(r"\w{3} 2126-01-\d\d 09:00", line)
    assert there[0] == there[1]  # in the line, and first of the list
    assert there[1:] == [
        f"{day} 2126-01-{n:02} 09:00"
        for day, n in (("Fri", 4), ("Mon", 7), ("Tue", 8), ("Wed", 9), ("Thu", 10))
    ]
    assert "Europe/Berlin" in line
    assert "Never run" in line


def test_it_leads_to_what_was_started_last_and_says_what_went_wrong(viewer: Client) -> None:
    made = factories.instance("errored", id="sched-1", workflow="process-order")
    fired = {"last_planned_at": factories.ago(hours=2)}
    ran = row("ran", last_instance_key=made.key, last_missed=3, **fired)
    gone = row("gone", last_instance_key=made.key + 99, **fired)
    refused = row("refused", last_error="customer: is missing", **fired)
    page = page_of(viewer)
    assert made.get_absolute_url() in line_of(page, ran)
    assert "missed 3 runs before it: no worker was running" in line_of(page, ran)
    assert "its instance was deleted" in line_of(page, gone)
    assert "could not start" in line_of(page, refused)
    assert "customer: is missing" in line_of(page, refused)


def test_one_that_the_code_declares_no_more_is_shown_and_left_alone(operator: Client) -> None:
    old = row(is_declared=False, next_at=None)
    line = line_of(page_of(operator), old)
    assert "no longer in the code" in line
    assert "<button" not in line
    code, page = act(operator, old, "run")
    assert (code, Instance.objects.count()) == (409, 0)
    assert "no longer declares schedule" in page


def test_one_of_a_zone_that_nobody_here_knows_is_shown(viewer: Client) -> None:
    schedule = row(timezone="Moon/Base")
    assert "no run is planned" in line_of(page_of(viewer), schedule)


def test_one_that_no_cluster_has_taken_over_is_shown(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = DeclaredSchedule("nights", Cron("0 2 * * *", "UTC"), "null")
    monkeypatch.setattr(timetable, "registry", {"process-order": SimpleNamespace(schedules=(declared,))})
    page = page_of(viewer, "/workflows/process-order/?tab=schedules")
    assert "planned when a worker starts" in page
    assert "<code>0 2 * * *</code> UTC" in page
    row("nights", expression="0 2 * * *", timezone="UTC")
    assert "planned when a worker starts" not in page_of(viewer, "/workflows/process-order/?tab=schedules")


def test_it_is_paused_and_resumed_and_both_are_recorded(operator: Client) -> None:
    schedule = row()
    assert act(operator, schedule, "pause")[0] == 302
    schedule.refresh_from_db()
    assert (schedule.paused_by, schedule.next_at) == ("oli", None)
    page = page_of(operator)
    assert "Paused mornings. It starts no planned runs until it is resumed." in page
    assert "by oli" in line_of(page, schedule)
    assert ">Resume</button>" in re.sub(r"<svg.*?</svg>", "", line_of(page, schedule))
    code, stale = act(operator, schedule, "pause")
    assert code == 409
    assert "is already paused by oli" in stale
    assert act(operator, schedule, "resume")[0] == 302
    assert act(operator, schedule, "resume")[0] == 409
    schedule.refresh_from_db()
    assert schedule.next_at is not None
    assert [(one.verb, one.actor, one.outcome) for one in Audit.objects.order_by("key")] == [
        ("schedule-pause", "oli", "done"),
        ("schedule-resume", "oli", "done"),
    ]
    trail = page_of(operator, "/audit/")
    assert "paused the schedule mornings" in trail


def test_it_is_run_now_once_however_often_somebody_clicks(operator: Client) -> None:
    schedule, token = row(paused_at=factories.ago(hours=1), next_at=None), new_instance_id()
    for _ in range(2):
        answer = operator.post(f"/schedules/{schedule.pk}/run/", {"token": token})
        assert answer.status_code == 302
    (made,) = Instance.objects.all()
    assert answer.headers["Location"] == made.get_absolute_url()
    assert (made.params["items"], made.started_by) == (GOOD["items"], "schedule mornings")
    assert [one.actor for one in Audit.objects.filter(verb="schedule-run")] == ["oli"]
    line = line_of(page_of(operator), schedule)
    assert made.get_absolute_url() in line
    assert "Never run" not in line
    assert act(operator, schedule, "run")[0] == 302
    assert Instance.objects.count() == 2
    assert Instance.objects.latest("key").get_absolute_url() in line_of(page_of(operator), schedule)


def test_params_that_fit_no_more_start_nothing(operator: Client) -> None:
    code, page = act(operator, row(params={"customer": 1}), "run")
    assert (code, Instance.objects.count()) == (409, 0)
    assert "customer" in page.split('role="alert"')[1][:600]


@pytest.mark.parametrize("action", ["pause", "resume", "run"])
def test_a_viewer_sees_the_buttons_disabled_and_may_not_press(viewer: Client, action: str) -> None:
    schedule = row()
    assert line_of(page_of(viewer), schedule).count('disabled title="Requires the operator role"') == 2
    assert act(viewer, schedule, action)[0] == 403
    (entry,) = Audit.objects.all()
    assert (entry.verb, entry.outcome, entry.data) == (
        f"schedule-{action}",
        "denied",
        {"schedule": "mornings"},
    )
    assert not Instance.objects.exists()


@pytest.mark.parametrize("action", ["pause", "resume", "run"])
def test_what_is_not_there_is_not_found(operator: Client, action: str) -> None:
    assert operator.post(f"/schedules/999999/{action}/").status_code == 404
    assert operator.get(f"/schedules/{row().pk}/{action}/").status_code == 405


def test_the_page_of_a_workflow_has_its_own_and_how_long_it_keeps(viewer: Client) -> None:
    own, other = row(), row("nights", workflow="refund")
    page = page_of(viewer, "/workflows/process-order/?tab=schedules")
    assert f'id="sc-{own.pk}"' in page
    assert f'id="sc-{other.pk}"' not in page
    overview = page_of(viewer, "/workflows/process-order/")
    assert "<dt>Retention</dt><dd>complete 30 d · errored 90 d · terminated 30 d</dd>" in overview
    frame = viewer.get("/_f/live/?topic=workflow:process-order&tab=schedules").content.decode()
    assert 'hx-target="#schedules"' in frame


@pytest.mark.parametrize("evil", EVIL, ids=[evil[:16] for evil in EVIL])
def test_names_are_text(operator: Client, evil: str) -> None:
    row(
        evil[:100],
        expression=evil[:100],
        timezone=evil[:64],
        last_error=evil,
        last_planned_at=factories.ago(days=1),
    )
    assert_is_text(page_of(operator), evil)
