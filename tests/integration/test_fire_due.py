"""What is planned starts once: however many workers look, and wherever one dies. Tests pass the time in."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from pydantic import BaseModel, field_validator

from engine import Schedule, WorkflowStep, workflow, workflows
from engine.models import Audit, Instance, ScheduleRow, Worker
from engine.steer import schedules
from engine.values.cron import Cron
from engine.values.identity import scheduled_id
from engine.worker.schedules import fire_due, sync
from tests.integration.cuts import cut_everywhere
from tests.integration.sessions import in_background, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_registry")]

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)
NIGHTLY = Schedule("0 2 * * *", timezone="Europe/Berlin", params={"team": "ops"}, name="nightly")

refused_teams: set[str] = set()


class Report(BaseModel):
    team: str
    is_new: bool | int = 1

    @field_validator("team")
    @classmethod
    def _is_known(cls, team: str) -> str:
        if team in refused_teams:
            raise ValueError("There is no such team any more.")
        return team


@pytest.fixture(autouse=True)
def _no_other_schedules(own_registry: None) -> None:
    for name in [*workflows]:
        if workflows[name].schedules:
            del workflows._workflows[name]
    refused_teams.clear()


def declare(*given: str | Schedule, name: str = "report") -> None:
    workflows._workflows.pop(name, None)

    @workflow(name, schedules=given)
    async def handler(step: WorkflowStep, params: Report) -> None: ...


def row(name: str = "nightly") -> ScheduleRow:
    return ScheduleRow.objects.get(name=name)


def started() -> list[str]:
    """Return the planned moments for which there is an instance, from their ids."""
    return [one.partition("-")[0] for one in Instance.objects.order_by("key").values_list("id", flat=True)]


@pytest.fixture
def nightly() -> None:
    """A schedule that fires at 01:00 UTC, known since noon."""
    declare(NIGHTLY)
    sync(NOON)


# Starting


@pytest.mark.usefixtures("nightly")
def test_nothing_starts_before_its_time_and_then_it_starts_once() -> None:
    assert row().next_at == NOON.replace(day=22, hour=1)
    assert fire_due(NOON.replace(day=22, hour=0, minute=59)) == 0
    now = NOON.replace(day=22, hour=1)
    assert [fire_due(now), fire_due(now), fire_due(now + DAY / 2)] == [1, 0, 0]
    instance = Instance.objects.get()
    assert (instance.params, instance.started_by) == ({"team": "ops", "is_new": 1}, "schedule nightly")
    plan = row()
    assert (plan.last_planned_at, plan.last_instance_key, plan.next_at) == (now, instance.key, now + DAY)
    assert (plan.last_missed, plan.last_error) == (0, "")
    assert Audit.objects.get().verb == "start"


@pytest.mark.usefixtures("nightly")
def test_nobody_can_take_the_place_of_a_planned_instance(settings: Any) -> None:
    """Neither by an id that was guessed, nor by one that exists."""
    moment = NOON.replace(day=22, hour=1)
    public = json.dumps(["schedule", "report", "nightly"])
    foretold = f"20261122T010000Z-{hashlib.sha256(public.encode()).hexdigest()[:16]}"
    known = scheduled_id("report", "nightly", moment, secret=settings.SECRET_KEY)
    for taken in (foretold, known):
        workflows["report"].start({"team": "forged"}, id=taken, by="mallory")
    assert fire_due(moment) == 1

    instance = Instance.objects.get(started_by="schedule nightly")
    assert (instance.params["team"], row().last_instance_key) == ("ops", instance.key)
    assert row().last_error == (
        f'An instance that this schedule did not start has the planned id "{known}". '
        f'The planned one was started as "{instance.id}".'
    )
    denied = Audit.objects.get(outcome="denied")
    assert (denied.verb, denied.reason) == ("schedule-refused", row().last_error)
    assert [fire_due(moment), fire_due(moment + DAY)] == [0, 1]
    assert row().last_error == ""


@pytest.mark.usefixtures("nightly")
def test_of_the_times_that_passed_while_nobody_looked_the_latest_starts() -> None:
    assert fire_due(NOON + 4 * DAY) == 1
    assert started() == ["20261125T010000Z"]
    assert (row().last_missed, row().next_at) == (3, NOON.replace(day=26, hour=1))


@pytest.mark.usefixtures("nightly")
def test_many_who_look_at_once_start_one() -> None:
    answers = together(6, lambda number: fire_due(NOON + DAY))
    assert sorted(answers) == [0, 0, 0, 0, 0, 1]
    assert started() == ["20261122T010000Z"]


@pytest.mark.usefixtures("nightly")
def test_a_schedule_that_somebody_holds_is_left_and_the_others_start() -> None:
    declare(NIGHTLY, Schedule("0 3 * * *", params={"team": "dev"}, name="other"))
    sync(NOON)
    with transaction.atomic():
        ScheduleRow.objects.select_for_update().get(name="nightly")
        assert in_background(lambda: fire_due(NOON + DAY))() == 1
    assert started() == ["20261122T030000Z"]
    assert fire_due(NOON + DAY) == 1


@pytest.mark.usefixtures("nightly")
@pytest.mark.parametrize("after", [False, True])
def test_wherever_it_dies_each_planned_time_starts_once(after: bool) -> None:
    days = 0

    def another_day(turn: int) -> None:
        nonlocal days
        days = turn
        fire_due(NOON + turn * DAY)

    deaths = cut_everywhere(another_day, after=after)
    assert deaths >= 6, "hardly any statement was cut: the test proves nothing"
    assert started() == [f"{NOON + n * DAY:%Y%m%d}T010000Z" for n in range(1, days + 1)]
    assert row().next_at == NOON.replace(hour=1) + (days + 1) * DAY
    assert Audit.objects.filter(verb="start").count() == days


@pytest.mark.usefixtures("nightly")
def test_a_start_that_is_refused_is_told_and_the_next_time_is_tried() -> None:
    refused_teams.add("ops")
    assert fire_due(NOON + DAY) == 0
    plan = row()
    assert "There is no such team any more." in plan.last_error
    assert (plan.last_instance_key, plan.next_at) == (None, NOON.replace(day=23, hour=1))
    denied = Audit.objects.get()
    assert (denied.verb, denied.outcome, denied.actor) == ("schedule-refused", "denied", "schedule nightly")
    assert denied.data == {"schedule": "nightly", "planned_at": "2026-11-22T01:00:00+00:00"}
    assert "no such team" in denied.reason

    refused_teams.clear()
    assert fire_due(NOON + 2 * DAY) == 1
    assert row().last_error == ""


@pytest.mark.usefixtures("nightly")
def test_a_paused_schedule_starts_nothing_and_makes_up_for_nothing() -> None:
    schedules.pause(row(), by="ana")
    assert fire_due(NOON + DAY) == 0
    declare(Schedule("0 4 * * *", params={"team": "ops"}, name="nightly"))
    assert fire_due(NOON + 2 * DAY) == 0
    assert (row().expression, row().next_at) == ("0 4 * * *", None)
    schedules.resume(row(), by="ana")
    next_at = row().next_at
    assert next_at is not None
    assert next_at.hour == 4
    assert started() == []


# What the code declares


@pytest.mark.usefixtures("nightly")
def test_other_times_plan_anew_and_other_params_do_not() -> None:
    due = row().next_at
    declare(
        Schedule(
            "0 2 * * *", timezone="Europe/Berlin", params={"team": "ops", "is_new": True}, name="nightly"
        )
    )
    sync(NOON + 2 * DAY)
    assert (row().params, row().next_at) == ({"team": "ops", "is_new": True}, due)
    assert row().params["is_new"] is True
    declare(Schedule("0 2 * * *", timezone="UTC", params={"team": "ops"}, name="nightly"))
    sync(NOON + 2 * DAY)
    assert row().next_at == NOON.replace(day=24, hour=2)
    assert started() == []


@pytest.mark.parametrize(
    ("other", "planned"),
    [
        ("0 2,14 * * *", ["20261122T010000Z"]),
        ("0 * * * *", ["20261122T010000Z"]),
        ("0 2 1 * *", []),
        ("30 2 * * *", []),
    ],
)
@pytest.mark.usefixtures("nightly")
def test_a_moment_that_the_old_and_the_new_times_share_is_not_lost_while_nobody_looks(
    other: str, planned: list[str]
) -> None:
    """The old schedule fires at two in the morning in Berlin; the new one is deployed 90 minutes later."""
    declare(Schedule(other, timezone="Europe/Berlin", params={"team": "new"}, name="nightly"))
    now = NOON.replace(day=22, hour=2, minute=40)
    assert [fire_due(now), fire_due(now)] == [len(planned), 0]
    assert started() == planned
    assert [one.params["team"] for one in Instance.objects.all()] == ["new"] * len(planned)
    assert (row().expression, row().next_at) == (other, Cron(other, "Europe/Berlin").after(now))
    if planned:
        assert (row().last_planned_at, row().last_missed) == (NOON.replace(day=22, hour=1), 0)


@pytest.mark.usefixtures("nightly")
def test_of_many_shared_moments_the_latest_starts_and_no_old_one_comes_again() -> None:
    declare(Schedule("0 */2 * * *", timezone="Europe/Berlin", params={"team": "ops"}, name="nightly"))
    assert fire_due(NOON + 5 * DAY) == 1
    assert started() == ["20261126T010000Z"]


@pytest.mark.usefixtures("nightly")
def test_what_the_code_declares_no_more_is_kept_and_never_fires_until_it_is_back() -> None:
    declare()
    assert fire_due(NOON + DAY) == 0
    assert (row().is_declared, row().next_at) == (False, None)
    declare(NIGHTLY)
    assert fire_due(NOON + 2 * DAY) == 0
    assert (row().is_declared, row().next_at) == (True, NOON.replace(day=24, hour=1))


@pytest.mark.usefixtures("nightly")
@pytest.mark.parametrize(("age", "is_left"), [(5, True), (90, False)])
def test_a_workflow_unknown_here_is_left_to_the_cluster_that_knows_it(age: int, is_left: bool) -> None:
    del workflows._workflows["report"]
    now = NOON + DAY
    Worker.objects.create(
        role="cluster",
        name="other",
        worker_id=-5,
        workflows=["report", "tick"],
        slots=1,
        started_at=NOON,
        seen_at=now - timedelta(seconds=age),
    )
    assert fire_due(now) == 0
    assert row().is_declared is is_left
    assert ("no workflow" in row().last_error) is not is_left
    assert started() == []


def test_two_clusters_that_start_together_write_one_row_each() -> None:
    declare(NIGHTLY)
    assert together(4, lambda number: sync(NOON)) == [0] * 4
    assert ScheduleRow.objects.count() == 1
