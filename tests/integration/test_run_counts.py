"""What a shift counts for charts: how long instances waited to start, how attempts at steps went.

It is counted in memory, and written every few seconds and when the shift ends. Starts and ends are counted in the
database itself: each case of tests/conformance is compared with those counts, in every profile.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from engine import RollbackContext, WorkflowStep, workflow
from engine.models import Instance, WorkflowCountDelta
from engine.status.series import Figures, series
from engine.steer import workflow_counts
from engine.steer.clock import database_time
from engine.values.records import AttemptRecord
from engine.values.states import AttemptPhase
from engine.worker import shift
from engine.worker.tally import Tally
from tests.counted import miscounted
from tests.shifts import running_shift, wait_until

pytestmark = [pytest.mark.usefixtures("engine_db", "own_registry")]

DAY = timedelta(days=1)


def told(name: str = "story") -> Figures:
    now = database_time()
    found = series([name], since=now - DAY, until=now + DAY, span=DAY).total
    workflow_counts.fold()
    assert series([name], since=now - DAY, until=now + DAY, span=DAY).total == found
    assert miscounted() == []
    return found


def counts(name: str = "story") -> tuple[int, int, int]:
    """Return how often it began, how many attempts at its steps succeeded, and how many were retries."""
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

        await step.do("charge", charge, rollback=undo, max_attempts=4, delay=0.05, **options)
        await step.do("ship", str)
        if what == "fail":
            raise LookupError(what)
        if what == "wait":
            await step.wait_for_event("go", timeout="30 days")

    return story


def run(instance: Instance, status: str = "") -> None:
    """Let a shift run it until it has ended or has this status, and end with it."""
    with running_shift():

        def is_there() -> bool:
            instance.refresh_from_db()
            return instance.status == status if status else instance.is_finished

        wait_until(is_there, what="the end")


def test_an_instance_begins_when_a_worker_first_runs_it_and_not_again() -> None:
    instance = declare().start("wait")
    run(instance, "waiting")
    assert counts() == (1, 2, 0)
    instance.send_event("go")
    run(instance)
    assert counts() == (1, 2, 0)
    found = told()
    assert (found.started, found.complete, found.retries) == (1, 1, 0)
    assert found.latency is not None


@pytest.mark.parametrize("atomic", [False, True])
def test_each_attempt_after_the_first_is_a_retry_and_one_of_them_succeeds(atomic: bool) -> None:
    run(declare(failures=2, atomic=atomic).start("plain"))
    assert counts() == (1, 2, 2)
    assert told().steps is not None


def test_rollbacks_are_no_steps() -> None:
    run(declare().start("fail"))
    assert counts() == (1, 2, 0)
    assert (told().errored, told().complete) == (1, 0)


def test_what_never_ran_has_no_latency() -> None:
    declare().start("plain").terminate()
    assert (told().started, told().terminated, told().latency) == (1, 1, None)


def test_a_restart_begins_once_more_and_steps_that_it_keeps_do_not_run_again() -> None:
    instance = declare().start("plain")
    run(instance)
    instance.restart()
    run(instance)
    assert counts() == (2, 4, 0)
    instance.restart(from_step="ship")
    run(instance)
    assert counts() == (2, 5, 0)
    assert told().started == 3


def test_the_latency_of_a_start_for_later_is_counted_from_when_it_is_due() -> None:
    run(declare().start("plain", at=database_time() + timedelta(seconds=1.5)))
    latency = told().latency
    assert latency is not None
    assert latency.p95 < timedelta(seconds=1)


def test_a_shift_writes_what_it_has_counted_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shift, "COUNT_SECONDS", 0.1)
    with running_shift():
        declare().start("plain")
        wait_until(lambda: counts() == (1, 2, 0), what="the counts")


def test_a_thousand_steps_are_few_rows() -> None:
    tally = Tally()
    now_us = int(time.time() * 1e6)
    for number in range(1_000):
        ended = AttemptRecord(number, 1, "w", now_us, "complete", finished_us=now_us + 1_000 * (number % 5))
        tally.written("pay", [ended])
    undone = AttemptRecord(1, 2, "w", now_us, "complete", finished_us=now_us, phase=AttemptPhase.ROLLBACK)
    tally.written("pay", [undone, AttemptRecord(2, 2, "w", now_us)])
    sums = tally.take()
    assert sums is not None
    assert sums.count('"succeeded"') <= 2 * 5
    assert "retried" not in sums
    assert tally.take() is None


@pytest.mark.parametrize("seconds", [0.0, 0.0004, 0.001, 0.0012, 0.5, 3.0, 86_400.0, 1e8])
def test_durations_are_counted_as_the_database_counts_them(seconds: float) -> None:
    tally = Tally()
    tally.written("pay", [AttemptRecord(1, 1, "w", 0, "complete", finished_us=int(seconds * 1e6))])
    with connection.cursor() as cursor:
        cursor.execute("SELECT engine_duration_bucket(%s * interval '1 microsecond')", [int(seconds * 1e6)])
        (bucket,) = cursor.fetchone()
    assert f'"bucket": {bucket}' in str(tally.take())
