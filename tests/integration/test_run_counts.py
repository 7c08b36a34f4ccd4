"""What workers run is counted once, with the change itself: first runs, attempts that succeed, and retries.

Each case of tests/conformance is compared with its counts, too, in every profile.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from engine import RollbackContext, WorkflowStep, workflow
from engine.models import WorkflowCountDelta
from engine.status.series import Figures, series
from engine.steer import workflow_counts
from engine.steer.clock import database_time
from engine.testing import workflow_test
from tests.counted import miscounted
from tests.stories import run_to_end, wait_for

pytestmark = [pytest.mark.usefixtures("engine_db", "own_registry")]

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _all_is_counted(engine_db: None) -> Iterator[None]:
    yield
    assert miscounted() == []
    workflow_counts.fold()
    assert miscounted() == []


def told(name: str = "story", *, of: timedelta = 60 * DAY) -> Figures:
    """What charts tell of it, also of a future that a test has travelled to."""
    now = database_time()
    return series([name], since=now - DAY, until=now + of, span=DAY).total


def counts(name: str = "story") -> tuple[int, int, int]:
    """Return how often it started, how many attempts at its steps succeeded, and how many were retries."""
    rows = WorkflowCountDelta.objects.filter(workflow=name)
    began, succeeded, retried = (
        sum(rows.filter(what=what).values_list("amount", flat=True))
        for what in ("began", "succeeded", "retried")
    )
    return began, succeeded, retried


def declare(*, failures: int = 0, **options: Any) -> Any:
    left = [failures]

    def charge() -> None:
        if left[0]:
            left[0] -= 1
            raise LookupError("try again")

    @workflow(timeout="50 days")
    async def story(step: WorkflowStep, what: str) -> None:
        def undo(ctx: RollbackContext) -> None: ...

        await step.do("charge", charge, rollback=undo, max_attempts=4, delay=1, **options)
        await step.do("ship", str)
        if what == "fail":
            raise LookupError(what)
        if what == "wait":
            await step.wait_for_event("go", timeout="30 days")

    return story


def test_a_start_counts_when_a_worker_first_runs_it() -> None:
    instance = declare().start("wait")
    assert counts() == (0, 0, 0)
    wait_for(instance, "waiting")
    assert counts() == (1, 2, 0)
    instance.send_event("go")
    run_to_end(instance)
    assert counts() == (1, 2, 0)  # the second run of the same generation is none


@pytest.mark.parametrize("atomic", [False, True])
def test_each_attempt_after_the_first_is_a_retry_and_one_of_them_succeeds(atomic: bool) -> None:
    run_to_end(declare(failures=2, atomic=atomic).start("plain"))
    assert counts() == (1, 2, 2)
    found = told()
    assert (found.started, found.complete, found.retries) == (1, 1, 2)
    assert found.latency is not None
    assert found.steps is not None


def test_rollbacks_are_no_steps() -> None:
    assert run_to_end(declare().start("fail")).rollback == "complete"
    assert counts() == (1, 2, 0)
    assert (told().errored, told().complete) == (1, 0)


def test_what_never_ran_did_not_start() -> None:
    instance = declare().start("plain")
    instance.terminate()
    assert counts() == (0, 0, 0)
    assert (told().started, told().terminated, told().latency) == (0, 1, None)


def test_a_restart_starts_once_more_and_steps_that_it_keeps_do_not_run_again() -> None:
    instance = declare().start("plain")
    run_to_end(instance)
    instance.restart()
    run_to_end(instance)
    assert counts() == (2, 4, 0)
    instance.restart(from_step="ship")
    run_to_end(instance)
    assert counts() == (3, 5, 0)
    timed = WorkflowCountDelta.objects.filter(what="began", bucket__gte=0)
    assert timed.count() == 2  # the last one did not wait to start


def test_a_step_that_a_person_retries_is_retried() -> None:
    instance = declare(failures=4, on_exhausted="pause").start("plain")
    wait_for(instance, "paused")
    assert counts() == (1, 0, 3)
    instance.retry_step("charge")
    run_to_end(instance)
    assert counts() == (1, 2, 4)


def test_the_latency_of_a_start_for_later_is_counted_from_when_it_is_due() -> None:
    story = declare()
    with workflow_test() as test:
        instance = story.start("plain", at=database_time() + 20 * DAY)
        test.run(instance)
    latency = told().latency
    assert latency is not None
    assert latency.p95 < timedelta(seconds=1)
    assert told(of=10 * DAY).started == 0


def test_what_is_rolled_back_with_its_transaction_was_never_counted() -> None:
    story = declare()
    instance = story.start("plain")
    with connection.cursor() as cursor, transaction.atomic():
        cursor.execute(
            "UPDATE engine_instance SET started_at = clock_timestamp() WHERE key = %s", [instance.key]
        )
        assert counts() == (1, 0, 0)
        transaction.set_rollback(True)
    assert counts() == (0, 0, 0)
