"""Starts at a time: nothing runs before it, everything counts from it, and steering works until then."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from engine import WorkflowStep, pauses, workflow
from engine.models import Instance
from engine.worker.database import sql
from tests.shifts import running_shift, wait_for, wait_until, witness
from tests.travel import age

HOUR = timedelta(hours=1)


@pytest.fixture
def look() -> Callable[[], None]:
    """Return what waits until the shift has looked at all that was due before."""
    return witness()


def is_to_come(instance: Instance) -> bool:
    row = instance.refresh()
    return (row.status, row.owner, row.started_at) == ("queued", None, None) and row.wake_at == row.starts_at


@pytest.mark.parametrize("most", [None, 1])
def test_a_later_start_runs_at_its_time_and_never_early(most: int | None) -> None:
    """Also not in advance, as what wakes up is: the handler would see a time before its start."""
    saw: list[datetime] = []

    @workflow(max_running=most)
    async def story(step: WorkflowStep) -> None:
        saw.append(step.now())
        saw.append(datetime.now(UTC))

    with running_shift():
        instance = story.start(at=timezone.now() + timedelta(seconds=0.7))
        assert instance.starts_at is not None
        assert (instance.status, instance.wake_at) == ("queued", instance.starts_at)
        wait_for(instance)
    assert instance.started_at is not None
    assert min(instance.started_at, *saw) >= instance.starts_at
    assert instance.started_at - instance.starts_at < timedelta(seconds=20)


def test_a_start_that_is_sooner_than_what_the_worker_waits_for_is_not_late() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None: ...

    with running_shift():
        later = story.start(at=timezone.now() + HOUR)
        sooner = story.start(at=timezone.now() + timedelta(seconds=0.3))
        wait_for(sooner)
    assert is_to_come(later)


def test_the_timeout_counts_from_the_start() -> None:
    @workflow(timeout="10m")
    async def story(step: WorkflowStep) -> None:
        await step.sleep("long", "30m")

    instance = story.start(at=timezone.now() + HOUR)
    assert instance.starts_at is not None
    assert instance.deadline_at == instance.starts_at + timedelta(minutes=10)
    age(instance, hours=1)
    with running_shift():
        wait_for(instance, "waiting")
        age(instance, minutes=11)
        wait_for(instance)
    assert (instance.status, instance.error["type"]) == ("errored", "WorkflowTimeoutError")


def test_a_later_start_can_be_terminated_and_never_runs(look: Callable[[], None]) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None: ...

    instance = story.start(at=timezone.now() + HOUR)
    instance.terminate(by="li", reason="not needed")
    age(instance, hours=2)
    with running_shift():
        look()
    assert (instance.refresh().status, instance.started_at) == ("terminated", None)


def test_a_restart_does_not_wait_for_the_start() -> None:
    @workflow(timeout="2h")
    async def story(step: WorkflowStep) -> str:
        return "done"

    instance = story.start(at=timezone.now() + HOUR).restart()
    assert (instance.starts_at, instance.generation) == (None, 2)
    assert instance.wake_at is not None
    assert instance.deadline_at is not None
    # Each is read from the clock.
    assert instance.deadline_at - instance.wake_at < timedelta(hours=2, seconds=1)
    with running_shift():
        wait_for(instance)
    assert instance.output == "done"


def test_a_resume_before_the_start_waits_for_it_and_one_after_it_does_not() -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        return "done"

    early, late = (story.start(at=timezone.now() + HOUR) for _ in range(2))
    early.pause().resume()
    assert is_to_come(early)
    late.pause()
    age(late, hours=2)
    with running_shift():
        late.resume()
        wait_for(late)
    assert late.output == "done"
    assert is_to_come(early)


def test_a_paused_workflow_holds_what_becomes_due_meanwhile(look: Callable[[], None]) -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        return "done"

    due, later = (story.start(at=timezone.now() + hours * HOUR) for hours in (1, 9))
    pauses.pause(story.name)
    age(due, hours=2)
    with running_shift():
        look()
        assert due.refresh().status == "queued"
        pauses.resume(story.name)
        wait_for(due)
    assert is_to_come(later)


def test_later_starts_take_no_place_of_a_limit() -> None:
    @workflow(max_running=1)
    async def story(step: WorkflowStep) -> None: ...

    later = [story.start(at=timezone.now() + HOUR) for _ in range(3)]
    with running_shift():
        wait_for(story.start())
    assert all(map(is_to_come, later))


def test_an_event_that_comes_before_the_start_waits_for_it(look: Callable[[], None]) -> None:
    @workflow
    async def story(step: WorkflowStep) -> int:
        return int((await step.wait_for_event("number")).payload)

    instance = story.start(at=timezone.now() + HOUR)
    with running_shift():
        instance.send_event("number", 5)
        look()
        assert is_to_come(instance)
        age(instance, hours=2)
        wait_for(instance)
    assert instance.output == 5


def test_a_clock_that_was_set_back_does_not_bring_a_later_start_forward() -> None:
    """What is queued for now becomes due again; see the sweep."""

    @workflow
    async def story(step: WorkflowStep) -> None: ...

    later, at_once = story.start(at=timezone.now() + HOUR), story.start()
    Instance.objects.filter(key=at_once.key).update(wake_at=timezone.now() + HOUR)
    Instance.objects.filter(key=later.key).update(wake_at=timezone.now() + 2 * HOUR)
    with connection.cursor() as cursor:
        cursor.execute(sql.DUE_AGAIN, {"workflows": ["story"]})
    assert at_once.refresh().wake_at <= timezone.now()  # type: ignore[operator]
    assert is_to_come(later)


def test_ten_later_starts_of_one_moment_all_run() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None: ...

    at = timezone.now() + timedelta(seconds=0.5)
    done = story.start_many([{"at": at} for _ in range(10)])
    with running_shift():
        wait_until(lambda: not Instance.objects.filter(workflow="story").exclude(status="complete").exists())
    assert all(one.starts_at == at for one in done.created)
