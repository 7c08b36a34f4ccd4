"""Schedules: what the code may declare, and what users do with them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from engine import (
    DeclarationError,
    InstanceExistsError,
    InvalidParamsError,
    Schedule,
    ScheduleNotDeclaredError,
    ScheduleNotFoundError,
    WorkflowStep,
    workflow,
    workflows,
)
from engine.declare.registry import Workflow
from engine.models import Audit, Instance, ScheduleRow
from engine.steer import schedules
from engine.steer.clock import database_time

pytestmark = pytest.mark.usefixtures("own_registry")


class Report(BaseModel):
    team: str
    pages: int = 3


class Week(BaseModel):
    days: int = 7


def declare(given: Any, *, takes_params: bool = True) -> Workflow[Any, Any]:
    if takes_params:

        @workflow("weekly-report", schedules=given)
        async def with_params(step: WorkflowStep, params: Report) -> None: ...

        return with_params

    @workflow("weekly-report", schedules=given)
    async def without(step: WorkflowStep) -> None: ...

    return without


# Declaring


def test_a_schedule_is_declared_with_its_zone_params_and_name() -> None:
    whole = Schedule("0  9 * * 1-5", timezone="Europe/Berlin", params=Report(team="ops"), name="mornings")
    (one,) = declare([whole]).schedules
    assert (one.name, one.cron.expression, one.cron.timezone) == ("mornings", "0 9 * * 1-5", "Europe/Berlin")
    assert one.params == '{"team":"ops","pages":3}'


def test_a_bare_expression_is_its_own_name_in_the_projects_zone(settings: Any) -> None:
    settings.TIME_ZONE = "America/Santiago"
    (one,) = declare(["0 9 * * *"], takes_params=False).schedules
    assert (one.name, one.cron.timezone, one.params) == ("0 9 * * *", "America/Santiago", "null")


def test_params_that_all_have_defaults_need_not_be_given() -> None:
    @workflow(schedules=["0 9 * * 1"])
    async def weekly(step: WorkflowStep, params: Week) -> None: ...

    assert weekly.schedules[0].params == '{"days":7}'


@pytest.mark.parametrize(
    ("given", "takes_params", "said"),
    [
        ("0 9 * * *", False, "It must be a list of cron expressions"),
        ([5], False, "not of type int"),
        (["@reboot"], False, '"@reboot" is not a valid schedule. It must have five fields'),
        (["0 0 31 2 *"], False, '"0 0 31 2 *" is not a valid schedule. It never fires'),
        (["* * * * *"] * 101, False, "101 entries; the limit is 100"),
        (
            [Schedule("0 9 * * *", timezone="Mars/Base")],
            False,
            "\"0 9 * * *\": There is no time zone 'Mars/Base'",
        ),
        (["0 9 * * *"], True, '"0 9 * * *": The workflow takes params, but the schedule has none'),
        ([Schedule("0 9 * * *", params={"team": 5})], True, "team: Input should be a valid string"),
        ([Schedule("0 9 * * *", params={})], False, "takes no params"),
        (["0 9 * * *", "0  9 * * *"], False, 'Two schedules are named "0 9 * * *"'),
        ([Schedule("0 9 * * *", name=" ")], False, "cannot be a schedule's name"),
        ([Schedule("0 9 * * *", name="x" * 101)], False, "1 to 100 characters"),
    ],
)
def test_a_mistake_is_refused_at_its_declaration(given: Any, takes_params: bool, said: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        declare(given, takes_params=takes_params)
    assert str(refused.value).startswith('Invalid declaration: Workflow "weekly-report": schedules: ')
    assert said in str(refused.value)


# Steering


@pytest.fixture
def row(db: None) -> ScheduleRow:
    """A schedule as a cluster writes it."""
    declare([Schedule("0 9 * * *", params={"team": "ops"}, name="daily")])
    return ScheduleRow.objects.create(
        workflow="weekly-report",
        name="daily",
        expression="0 9 * * *",
        timezone="UTC",
        params={"team": "ops", "pages": 3},
        next_at=datetime(2100, 1, 1, 9, tzinfo=UTC),
    )


def trail() -> list[tuple[Any, ...]]:
    return list(
        Audit.objects.order_by("key").values_list(
            "verb", "actor", "workflow", "instance_id", "before", "after", "reason"
        )
    )


def test_a_paused_schedule_plans_nothing_until_it_is_resumed(row: ScheduleRow) -> None:
    schedules.pause(row, by="ana", reason="holidays")
    assert (row.next_at, row.paused_by, row.paused_at is None) == (None, "ana", False)
    assert schedules.upcoming(row) == []

    schedules.resume(row, by="bob")
    now = database_time()
    assert (row.paused_at, row.paused_by) == (None, "")
    assert row.next_at is not None
    assert now < row.next_at
    assert (row.next_at - now).days == 0
    assert trail() == [
        ("schedule-pause", "ana", "weekly-report", "", "active", "paused", "holidays"),
        ("schedule-resume", "bob", "weekly-report", "", "paused", "active", ""),
    ]


def test_pausing_twice_keeps_who_did_it_first(row: ScheduleRow) -> None:
    for _ in range(2):
        schedules.resume(row, by="cleo")
    schedules.pause(row, by="ana")
    schedules.pause(row, by="bob")
    assert row.paused_by == "ana"
    assert [verb for verb, *_ in trail()] == ["schedule-pause"]


def test_the_next_times_begin_with_the_one_that_is_due(row: ScheduleRow) -> None:
    row.next_at = datetime(2026, 11, 21, 9, tzinfo=UTC)
    later = schedules.upcoming(row, 3, now=datetime(2026, 11, 24, 12, tzinfo=UTC))
    assert [f"{one:%d %H}" for one in later] == ["21 09", "25 09", "26 09"]
    assert schedules.upcoming(row, 0) == []


def test_running_one_now_starts_an_instance_and_says_who_asked(row: ScheduleRow) -> None:
    planned = row.next_at
    schedules.pause(row, by="ana")
    instance = schedules.run_now(row, by="bob", reason="for the board")
    assert (instance.workflow, instance.params, instance.started_by) == (
        "weekly-report",
        {"team": "ops", "pages": 3},
        "schedule daily",
    )
    assert ("schedule-run", "bob", "weekly-report", instance.id, "", "", "for the board") in trail()
    assert planned is not None
    assert row.refresh_from_db() is None
    assert row.next_at is None


def test_running_one_now_twice_under_one_id_starts_one_and_never_takes_anothers(row: ScheduleRow) -> None:
    first, second = (schedules.run_now(row, id="one", by="bob") for _ in range(2))
    assert first.key == second.key
    workflows["weekly-report"].start({"team": "other"}, id="two", by="mallory")
    with pytest.raises(InstanceExistsError, match='already has an instance "two"'):
        schedules.run_now(row, id="two", by="bob")


def test_what_cannot_start_now_says_why_and_starts_nothing(row: ScheduleRow) -> None:
    ScheduleRow.objects.update(params={"team": 5})
    row.refresh_from_db()
    with pytest.raises(InvalidParamsError, match="team"):
        schedules.run_now(row)
    ScheduleRow.objects.update(is_declared=False, next_at=None)
    with pytest.raises(ScheduleNotDeclaredError, match='no longer declares schedule "daily"'):
        schedules.run_now(row)
    ScheduleRow.objects.all().delete()
    for act in (schedules.run_now, schedules.pause, schedules.resume):
        with pytest.raises(ScheduleNotFoundError, match='no schedule "daily"'):
            act(row)
    assert (Instance.objects.count(), trail()) == (0, [])
