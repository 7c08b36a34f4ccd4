"""What a shift does by the clock: schedules and retention, in threads of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import OperationalError, connection

from engine import WorkflowStep, workflow, workflows
from engine.models import Failure, FailureCount, Instance, ScheduleRow, Worker
from engine.steer import retention
from engine.steer.clock import database_time
from engine.values.error_record import ErrorRecord
from engine.values.fingerprint import failed
from engine.worker import claims, periodic, schedules, shift
from studio.models import Webhook, WebhookDelivery
from tests.integration.rows import attempt_of, row_of, step_of
from tests.shifts import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_registry")]

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


@contextmanager
def keeping_time(*names: str) -> Iterator[None]:
    """Run permanent shifts, which do what is due by the clock, until the block ends."""
    stop = threading.Event()

    def work(name: str) -> None:
        terms = shift.Terms(slots=4, name=name, should_stop=stop.is_set, is_permanent=True, keeps_time=True)
        shift.run(terms)
        connection.close()

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)


def declare(*given: str) -> None:
    """Declare the only workflow there is."""
    workflows._workflows.clear()

    @workflow("report", schedules=given)
    async def handler(step: WorkflowStep) -> None: ...


def has_row() -> bool:
    return ScheduleRow.objects.filter(workflow="report").exists()


def test_what_came_due_while_nobody_ran_starts_with_the_first_shift() -> None:
    declare("* * * * *")
    schedules.sync()
    minute = database_time().replace(second=0, microsecond=0)
    ScheduleRow.objects.update(next_at=minute - timedelta(minutes=5))
    with keeping_time("one"):
        wait_until(lambda: Instance.objects.exists())
    assert ScheduleRow.objects.get().last_missed >= 5


def test_several_shifts_start_one_instance_a_planned_time_and_in_time() -> None:
    declare("0 0 29 2 *")
    with keeping_time("one", "two", "three"):
        wait_until(has_row)
        planned = database_time() + 1.5 * SECOND
        wait_until(lambda: Worker.objects.filter(role="shift").count() == 3)
        time.sleep(0.2)
        ScheduleRow.objects.update(next_at=planned)
        wait_until(lambda: Instance.objects.exists())
        time.sleep(2.5)  # until the others would have looked
    assert Instance.objects.get().created_at - planned < SECOND


def test_a_schedule_is_seen_to_by_another_shift_when_the_one_at_the_front_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(self: claims.Claimer) -> None: ...

    declare("0 0 29 2 *")
    monkeypatch.setattr(claims.Claimer, "_step_forward", never)
    with keeping_time("one"):
        wait_until(has_row)
        planned = database_time()
        ScheduleRow.objects.update(next_at=planned)
        wait_until(lambda: Instance.objects.exists())
    assert Instance.objects.get().created_at - planned > SECOND


def test_a_database_that_refuses_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    declare("* * * * *")
    fire_due, calls = schedules.fire_due, []

    def cut() -> int:
        calls.append(1)
        if len(calls) < 3:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return fire_due()

    monkeypatch.setattr(schedules, "fire_due", cut)
    with keeping_time("one"):
        wait_until(has_row)
    assert caplog.text.count("is tried again") == 2


def test_finished_instances_are_deleted_by_the_shift_at_the_front(monkeypatch: pytest.MonkeyPatch) -> None:
    declare()
    swept: list[str] = []
    monkeypatch.setattr(periodic, "FIRST_RETENTION_SECONDS", 0.1)
    monkeypatch.setattr(periodic, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(retention, "sweep", lambda: swept.append(threading.current_thread().name))
    with keeping_time("one", "two"):
        wait_until(lambda: bool(swept))
        time.sleep(0.5)
    assert len(swept) == 1


def test_failures_are_counted_by_the_shift_at_the_front(monkeypatch: pytest.MonkeyPatch) -> None:
    declare()
    monkeypatch.setattr(periodic, "COUNT_SECONDS", 0.2)
    group = failed(ErrorRecord("Declined", "no"), workflow="report", step="s1")
    kept = {name: getattr(group, name) for name in group.__slots__}
    began = database_time().replace(minute=0, second=0, microsecond=0) - DAY
    Failure.objects.create(**kept, first_seen=began, counted_to=began)
    at = began + timedelta(minutes=5)
    gone = row_of(workflow="report", status="complete", wake_at=None, finished_at=at, created_at=began)
    step_of(gone, status="errored", finished_at=at, attempts=1, delivery=1, started_at=began)
    attempt_of(
        gone,
        status="errored",
        error={"type": "Declined"},
        started_at=began,
        finished_at=at,
        failed_at=at,
        fingerprint=group.fingerprint,
    )
    with keeping_time("one", "two"):
        wait_until(lambda: FailureCount.objects.exists())
    assert list(FailureCount.objects.values_list("hour", "attempts")) == [(began, 1)]


def test_old_bodies_of_deliveries_are_deleted_too_though_no_more_arrive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        raise OperationalError("of another sweeper")

    declare()
    hook = Webhook.objects.create(
        name="billing", slug="billing", scheme="github", secret="", action="start", workflow="report"
    )
    given = {"webhook": hook, "body": "sealed", "outcome": "done"}
    WebhookDelivery.objects.create(delivery_id="new", **given)
    old = database_time() - 8 * DAY
    WebhookDelivery.objects.create(delivery_id="old", received_at=old, last_at=old, **given)
    monkeypatch.setattr(periodic, "FIRST_RETENTION_SECONDS", 0.1)
    monkeypatch.setattr(retention, "sweep", fail)
    with keeping_time("one"):
        wait_until(lambda: WebhookDelivery.objects.filter(body=None).exists())
    assert [row.delivery_id for row in WebhookDelivery.objects.filter(body="sealed")] == ["new"]


def test_a_sweep_that_takes_long_holds_up_no_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    declare("0 0 29 2 *")
    begun, let_out = threading.Event(), threading.Event()

    def sweep() -> None:
        begun.set()
        let_out.wait(60)

    monkeypatch.setattr(periodic, "FIRST_RETENTION_SECONDS", 0.1)
    monkeypatch.setattr(retention, "sweep", sweep)
    try:
        with keeping_time("one"):
            assert begun.wait(60)
            wait_until(has_row)
            ScheduleRow.objects.update(next_at=database_time())
            wait_until(lambda: Instance.objects.exists())
    finally:
        let_out.set()


def test_a_shift_says_what_it_holds_and_takes_it_back_at_its_end() -> None:
    declare()
    with keeping_time("one"):
        wait_until(lambda: Worker.objects.filter(role="shift").exists())
        (row,) = Worker.objects.all()
        assert (row.name, row.workflows, row.slots, row.held) == ("one", ["report"], 4, 0)
    assert not Worker.objects.exists()
