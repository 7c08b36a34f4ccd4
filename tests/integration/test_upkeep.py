"""What a cluster does by the clock: the rows of django-q's that bring it, and what may stand in their way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ, Schedule
from django_q.signing import SignedPackage

from engine import WorkflowStep, workflow, workflows
from engine.models import Instance, ScheduleRow, Worker
from engine.worker import schedules, upkeep
from tests.integration.sessions import together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_registry")]

MINUTE = timedelta(minutes=1)


def declare(*schedules: str) -> None:
    """Declare the only workflow there is."""
    workflows._workflows.clear()

    @workflow("report", schedules=schedules)
    async def handler(step: WorkflowStep) -> None: ...


def rows() -> list[Any]:
    return [
        *Schedule.objects.order_by("name").values_list("name", "func", "schedule_type", "minutes", "repeats")
    ]


RETENTION = ("reprise: retention", "engine.retention.sweep", "H", None, -1)
SCHEDULES = ("reprise: schedules", "engine.worker.schedules.fire_due", "I", 1, -1)


def test_clusters_that_start_together_plan_one_row_for_each_purpose() -> None:
    declare("0 9 * * *")
    assert together(4, lambda number: upkeep.begin()) == [None] * 4
    assert rows() == [RETENTION, SCHEDULES]
    next_run = Schedule.objects.get(name="reprise: schedules").next_run
    assert (next_run.second, next_run.microsecond) == (0, 0)
    assert timezone.now() - MINUTE < next_run <= timezone.now() + MINUTE
    assert ScheduleRow.objects.get().workflow == "report"


def test_nothing_looks_for_schedules_where_none_is_declared() -> None:
    declare("0 9 * * *")
    upkeep.begin()
    declare()
    upkeep.begin()
    assert rows() == [RETENTION]


def test_a_connection_that_is_cut_meanwhile_is_no_failure_of_anybody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The cluster begins anew when it has its database back."""

    def cut() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    monkeypatch.setattr(schedules, "fire_due", cut)
    with caplog.at_level("WARNING", logger="engine.cluster"):
        upkeep.begin()
    connection.close()
    assert "The database was lost" in caplog.text
    assert rows() == []


def test_what_came_due_while_no_cluster_ran_starts_with_the_first() -> None:
    declare("* * * * *")
    upkeep.begin()
    ScheduleRow.objects.update(next_at=timezone.now().replace(second=0, microsecond=0) - 5 * MINUTE)
    Schedule.objects.update(next_run=timezone.now() - 90 * MINUTE)
    upkeep.begin()
    assert Instance.objects.count() == 1
    assert ScheduleRow.objects.get().last_missed >= 5
    # django-q would make up for each minute, if it is told to catch up; retention has its turn.
    late = Schedule.objects.filter(next_run__lt=timezone.now() - MINUTE)
    assert [one.name for one in late] == ["reprise: retention"]


def test_a_look_queues_what_is_due_and_nothing_else() -> None:
    declare("0 9 * * *")
    upkeep.begin()
    Schedule.objects.filter(name="reprise: schedules").update(next_run=timezone.now() - timedelta(seconds=1))
    upkeep.look()
    upkeep.look()
    task = SignedPackage.loads(OrmQ.objects.get().payload)
    assert (task["func"], task["save"], task["ack_failure"]) == (
        "engine.worker.schedules.fire_due",
        False,
        True,
    )


def test_a_row_that_django_q_stumbles_over_does_not_keep_schedules_from_their_turn() -> None:
    """It treats them all in one transaction: a cron expression without croniter ends it for everybody."""
    declare("* * * * *")
    upkeep.begin()
    cron = {"schedule_type": Schedule.CRON, "cron": "* * * * *", "next_run": timezone.now()}
    Schedule.objects.bulk_create([Schedule(func="math.sqrt", args="4", **cron)])
    ScheduleRow.objects.update(next_at=timezone.now().replace(second=0, microsecond=0))
    Schedule.objects.update(next_run=timezone.now() - 2 * MINUTE)
    upkeep.look()
    assert OrmQ.objects.count() == 0
    assert Instance.objects.count() == 1


def test_what_only_this_cluster_knows_starts_although_another_one_had_the_turn() -> None:
    declare("* * * * *")
    upkeep.begin()
    ScheduleRow.objects.update(next_at=timezone.now().replace(second=0, microsecond=0))
    Worker.objects.create(
        role="cluster",
        name="mine",
        seat=-1,
        workflows=["report"],
        slots=1,
        started_at=timezone.now(),
        seen_at=timezone.now(),
    )
    mine = workflows._workflows.pop("report")
    assert schedules.fire_due() == 0
    Schedule.objects.update(next_run=timezone.now() + MINUTE)
    workflows._workflows["report"] = mine
    upkeep.look()
    assert Instance.objects.count() == 1


@pytest.mark.parametrize("func", ["engine.worker.schedules.fire_due", "engine.retention.sweep"])
def test_what_the_rows_name_can_be_called_without_arguments(func: str) -> None:
    from pydoc import locate

    declare("0 9 * * *")
    run: Any = locate(func)
    assert run() == 0
