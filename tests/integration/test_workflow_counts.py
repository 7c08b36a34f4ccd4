"""Every start and every end of a generation is counted once, with the change itself; counts are added up and deleted.

Each case of tests/conformance is compared with its counts, too, in every profile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from engine import NonRetryableError, RollbackContext, WorkflowStep, workflow
from engine.models import Instance, WorkflowCount, WorkflowCountDelta
from engine.steer import workflow_counts
from engine.steer.clock import database_time
from engine.testing import workflow_test
from engine.worker import periodic, schedules
from tests.counted import counted, miscounted
from tests.integration.rows import row_of
from tests.integration.test_periodic import keeping_time
from tests.shifts import wait_until
from tests.stories import run_to_end, wait_for

pytestmark = [pytest.mark.usefixtures("engine_db", "own_registry")]

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture(autouse=True)
def _all_is_counted(engine_db: None) -> Iterator[None]:
    yield
    if Instance.objects.exists():
        assert miscounted() == []


def declare(name: str = "story", *, fails: Callable[[], bool] = lambda: False) -> Any:
    @workflow(name, timeout="1 day")
    async def story(step: WorkflowStep, what: str) -> str:
        def undo(ctx: RollbackContext) -> None:
            if fails():
                raise NonRetryableError("no refund")

        if what == "abort":
            await step.abort("enough")
        if what == "child":
            await step.run_workflow("child", name, "plain")
            await step.spawn("other", name, "plain")
        await step.do("charge", str, rollback=undo)
        if what == "wait":
            await step.wait_for_event("go", timeout="30 days")
        if what == "fail":
            raise LookupError(what)
        return what

    return story


def things(name: str = "story") -> dict[str, int]:
    return {what: amount for (workflow, what), amount in counted().items() if workflow == name and amount}


def fold() -> int:
    return workflow_counts.fold()


def test_a_start_is_counted_and_so_is_what_it_comes_to() -> None:
    story = declare()
    for what in ("plain", "fail", "abort"):
        run_to_end(story.start(what))
    assert things() == {"started": 3, "complete": 1, "errored": 1, "terminated": 1}


def test_many_that_start_at_once_are_one_change() -> None:
    story = declare()
    story.start("plain", id="taken")
    story.start_many([{"params": "plain", "id": one} for one in ("a", "b", "taken")])
    assert [row.amount for row in WorkflowCountDelta.objects.order_by("key")] == [1, 2]


def test_an_id_in_use_is_no_start() -> None:
    story = declare()
    for _ in range(2):
        story.get_or_start("one", "plain")
    assert things() == {"started": 1}


def test_children_are_counted_in_their_own_workflow() -> None:
    story = declare()
    run_to_end(story.start("child"))
    wait_until_quiet()
    assert things() == {"started": 3, "complete": 3}


def wait_until_quiet() -> None:
    for instance in Instance.objects.all():
        wait_for(instance)


def test_planned_starts_are_counted() -> None:
    @workflow("report", schedules=["* * * * *"])
    async def report(step: WorkflowStep) -> None: ...

    schedules.sync()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE engine_schedule SET next_at = clock_timestamp() - interval '1 second'")
    schedules.fire_due()
    assert things("report") == {"started": 1}


def test_a_timeout_is_counted_as_a_failure() -> None:
    instance = declare().start("wait")
    assert run_to_end(instance).status == "errored"
    assert things() == {"started": 1, "errored": 1}


@pytest.mark.parametrize("rollback", [True, False])
def test_what_is_terminated_is_counted_once_whatever_is_rolled_back(rollback: bool) -> None:
    instance = declare().start("wait")
    wait_for(instance, "waiting")
    instance.terminate(rollback=rollback)
    wait_for(instance)
    assert things() == {"started": 1, "terminated": 1}


def test_children_that_end_with_their_parent_are_counted() -> None:
    declare()

    @workflow
    async def parent(step: WorkflowStep) -> None:
        await step.run_workflow("child", "story", "wait")

    instance = parent.start()
    wait_for(instance, "waiting")
    wait_for(Instance.objects.get(workflow="story"), "waiting")
    instance.terminate()
    wait_until_quiet()
    assert things() == {"started": 1, "terminated": 1}
    assert things("parent") == {"started": 1, "terminated": 1}


def test_a_restart_starts_a_generation_and_ends_the_open_one() -> None:
    instance = declare().start("wait")
    wait_for(instance, "waiting")
    instance.restart()
    assert things() == {"started": 2, "terminated": 1}
    wait_for(instance, "waiting")
    instance.send_event("go")
    run_to_end(instance)
    instance.restart(from_step="charge")
    assert things() == {"started": 3, "terminated": 1, "complete": 1}


def test_an_end_is_taken_back_when_its_failed_rollback_is_retried_and_counted_again() -> None:
    is_mended: list[bool] = []
    instance = declare(fails=lambda: not is_mended).start("fail")
    assert run_to_end(instance).rollback == "failed"
    fold()
    assert things() == {"started": 1, "errored": 1}
    is_mended.append(True)
    instance.retry_rollback()
    assert things() == {"started": 1}
    assert run_to_end(instance).rollback == "complete"
    assert things() == {"started": 1, "errored": 1}
    fold()
    assert things() == {"started": 1, "errored": 1}


def test_what_is_rolled_back_with_its_transaction_was_never_counted() -> None:
    story = declare()
    with transaction.atomic():
        story.start("plain")
        assert things() == {"started": 1}
        transaction.set_rollback(True)
    assert things() == {}


def test_counts_outlive_what_was_counted() -> None:
    instance = declare().start("plain")
    run_to_end(instance).delete()
    assert things() == {"started": 1, "complete": 1}


def test_the_duration_is_counted_since_the_generation_first_ran() -> None:
    with workflow_test() as test:

        @workflow
        async def naps(step: WorkflowStep, hours: int) -> None:
            await step.sleep("nap", hours * 3600)

        instance = naps.start(3)
        test.run(instance)
        ended = WorkflowCountDelta.objects.get(what="complete")
        assert duration(ended) == pytest.approx(3 * 3600, rel=0.1)


def duration(row: WorkflowCountDelta | WorkflowCount) -> float:
    return float(1.2 ** (row.bucket + 0.5)) / 1000


@pytest.mark.parametrize("seconds", [0.0015, 0.18, 2.1, 9.4, 190, 172_800, 365 * 86_400])
def test_a_duration_differs_from_its_bucket_by_10_percent_at_most(seconds: float) -> None:
    now = timezone.now()
    times = {"created_at": now, "started_at": now, "finished_at": now + timedelta(seconds=seconds)}
    row_of(status="complete", output=1, wake_at=None, **times)
    assert duration(WorkflowCountDelta.objects.get(what="complete")) == pytest.approx(seconds, rel=0.0955)


def test_what_took_no_time_or_a_negative_one_is_in_the_first_bucket() -> None:
    now = timezone.now()
    for seconds in (0, -5):
        times = {"started_at": now, "finished_at": now + timedelta(seconds=seconds)}
        row_of(id=f"took{seconds}", status="complete", output=1, wake_at=None, **times)
    assert [row.bucket for row in WorkflowCountDelta.objects.filter(what="complete")] == [0, 0]


# Added up


def test_changes_are_added_to_their_minute_hour_and_day() -> None:
    story = declare()
    for _ in range(2):
        run_to_end(story.start("plain"))
        assert fold() > 0
    assert not WorkflowCountDelta.objects.exists()
    assert fold() == 0
    for unit in ("minute", "hour", "day"):
        rows = WorkflowCount.objects.filter(unit=unit)
        assert sum(row.amount for row in rows.filter(what="started")) == 2
        assert sum(row.amount for row in rows.filter(what="complete")) == 2


def test_one_run_adds_a_bounded_number_of_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow_counts, "BATCH", 2)
    monkeypatch.setattr(workflow_counts, "ROUNDS", 2)
    story = declare()
    story.start("plain")
    with connection.cursor() as cursor:  # a plan for a table of one row looks for the batch once for each row
        cursor.execute("ANALYZE engine_workflow_count_delta")
    for _ in range(4):
        story.start("plain")
    assert (fold(), fold(), fold()) == (4, 1, 0)
    assert things() == {"started": 5}


@pytest.mark.django_db(transaction=True)
def test_two_workers_that_add_up_at_once_add_each_change_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow_counts, "BATCH", 10)
    stories = [declare(name) for name in ("one", "two", "three")]
    for number in range(60):
        stories[number % 3].start("plain")
    begin = threading.Barrier(2)

    def add_up() -> None:
        begin.wait(60)
        while fold():
            pass
        connection.close()

    threads = [threading.Thread(target=add_up) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not WorkflowCountDelta.objects.exists()
    assert [things(name) for name in ("one", "two", "three")] == [{"started": 20}] * 3


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_is_held_open_delays_neither_starts_nor_the_adding_up() -> None:
    story = declare()
    story.start("plain")
    is_held, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            story.start("plain")
            is_held.set()
            may_end.wait(60)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert is_held.wait(60)
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '1s'")
        story.start("plain")
        assert fold() == 2
        assert things() == {"started": 2}
    finally:
        may_end.set()
        holder.join(60)
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")
    assert fold() == 1
    assert things() == {"started": 3}


def ended_at(moment: datetime) -> None:
    times = {"created_at": moment, "started_at": moment, "finished_at": moment}
    row_of(id=f"at-{moment:%Y%m%d%H%M}", status="complete", output=1, wake_at=None, **times)


def test_minutes_are_kept_for_26_hours_and_hours_and_days_for_90_days() -> None:
    now = database_time()
    for back in (HOUR, 25 * HOUR, 27 * HOUR, 89 * DAY):
        ended_at(now - back)
    workflow_counts.fold(now=now - 89 * DAY)
    assert WorkflowCount.objects.filter(unit="minute", what="complete").count() == 4
    workflow_counts.purge(now=now)
    left = WorkflowCount.objects.filter(what="complete")
    assert {unit: left.filter(unit=unit).count() for unit in ("minute", "hour")} == {"minute": 2, "hour": 4}
    workflow_counts.purge(now=now + 2 * DAY)
    assert left.filter(unit="hour").count() == 3
    Instance.objects.all().delete()


def test_what_is_too_old_to_be_kept_is_not_added() -> None:
    ended_at(database_time() - 27 * HOUR)
    fold()
    assert {row.unit for row in WorkflowCount.objects.all()} == {"hour", "day"}
    Instance.objects.all().delete()


@pytest.mark.django_db(transaction=True)
def test_the_shift_at_the_front_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic, "FOLD_SECONDS", 0.1)
    declare().start("plain")
    with keeping_time("one", "two"):
        wait_until(lambda: not WorkflowCountDelta.objects.exists())
    assert things()["started"] == 1
