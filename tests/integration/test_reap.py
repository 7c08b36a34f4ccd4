"""What a dead worker held is taken back at once, also where somebody holds the row at that moment."""

from __future__ import annotations

import time
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from engine import WorkflowStep, workflow
from engine.declare.registry import Workflow
from engine.invariants import INVARIANTS, look
from engine.models import Attempt, Instance, Step
from engine.steer.notify import REAP
from engine.worker import claims, shift
from engine.worker.database import sql
from engine.worker.quarantined import TakesQuarantined
from tests.integration.rows import attempt_of, leased, step_of
from tests.integration.sessions import Hints
from tests.shifts import running_shift, wait_for

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")

DEAD_WORKER = 4_242


def test_a_row_that_a_sender_holds_when_its_worker_dies_does_not_wait_for_the_next_sweep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(claims, "SWEEP_SECONDS", 3600.0)

    @workflow
    async def story(step: WorkflowStep) -> str:
        return "done"

    with running_shift():
        wait_for(story.start())  # the first sweep is over
        locked, release = Event(), Event()
        left = leased(
            Instance.objects.create(workflow=story.name, id="left", params={}), worker_id=DEAD_WORKER
        )
        sender = Thread(target=_hold, args=(left, locked, release))
        sender.start()
        assert locked.wait(60)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify('engine_wake', %s)", [REAP])
        time.sleep(0.1)  # the sweep passes the row by
        assert left.refresh().status == "running"
        release.set()
        sender.join()
        # It is suspect, and runs alone when the shift has nothing else to do.
        assert wait_for(left).output == "done"


def test_what_a_process_for_suspects_takes_back_and_may_not_run_is_told_to_the_shifts(hints: Hints) -> None:
    """Of what its like held when it died, only the one that it was observing may have killed it."""

    @workflow
    async def story(step: WorkflowStep) -> str:
        return "done"

    def held(id: str, *, quarantined: bool) -> Instance:
        row = Instance.objects.create(workflow=story.name, id=id, params={}, quarantined=quarantined)
        return leased(row, worker_id=DEAD_WORKER)

    suspect, cleared = held("suspect", quarantined=True), held("cleared", quarantined=False)
    hints.heard()
    shift.run(
        shift.Terms(
            slots=1,
            name="alone",
            should_stop=lambda: False,
            idle_seconds=0.5,
            takes_quarantined=TakesQuarantined.ONLY,
        )
    )
    assert suspect.refresh().status == "complete"
    assert (cleared.refresh().status, cleared.quarantined) == ("queued", False)
    assert ("engine_wake", "") in hints.heard()


def _hold(instance: Instance, locked: Event, release: Event) -> None:
    try:
        with transaction.atomic():
            Instance.objects.select_for_update().get(key=instance.key)
            locked.set()
            release.wait(60)
    finally:
        connection.close()


# What a dead worker has left of an instance that is paused, or ended, from outside


def story() -> Workflow[None, str]:
    @workflow(on_code_change="pause")
    async def story(step: WorkflowStep) -> str:
        return await step.do("work", lambda: "done")

    return story


def left_behind(of: Workflow[None, str], *, quarantined: bool = False, **values: Any) -> Instance:
    """An instance in whose body its worker has died."""
    given = {"code": of.fingerprint, "fence": 1, "quarantined": quarantined, "status": "queued", **values}
    instance = Instance.objects.create(
        workflow=of.name, id="left", wake_at=timezone.now(), params={}, **given
    )
    options = {"max_attempts": 5}
    step_of(instance, name="work", attempts=1, options=options, started_at=timezone.now())
    attempt_of(instance, worker="dead", quarantined=quarantined, started_at=timezone.now())
    return instance


def standing(instance: Instance) -> tuple[str, str, int, list[tuple[int, str]]]:
    """Return the status of the instance and of its step, how many attempts that has lost, and all attempts."""
    step = Step.objects.get(instance=instance)
    attempts = Attempt.objects.filter(instance=instance).order_by("number").values_list("number", "status")
    return instance.refresh().status, step.status, step.lost, list(attempts)


def violated() -> set[str]:
    with connection.cursor() as cursor:
        return {one.name for one in INVARIANTS if look(cursor, one).count}


def test_an_attempt_is_lost_and_not_running_while_its_instance_is_paused() -> None:
    """The pause was asked for while it ran, then its worker died."""
    instance = leased(left_behind(story()), status="waiting_for_pause", worker_id=DEAD_WORKER)
    with running_shift():
        wait_for(instance, "paused")
        assert standing(instance) == ("paused", "waiting", 1, [(1, "lost")])
        assert violated() == {"pauses-are-audited"}
        instance.resume()
        wait_for(instance)
    assert standing(instance) == ("complete", "complete", 1, [(1, "lost"), (2, "complete")])
    assert violated() == set()


def test_an_attempt_that_nobody_has_gone_on_with_is_lost_when_its_instance_is_paused() -> None:
    instance = left_behind(story())
    instance.pause()
    assert standing(instance) == ("paused", "waiting", 1, [(1, "lost")])
    instance.resume()
    with running_shift():
        wait_for(instance)
    assert standing(instance) == ("complete", "complete", 1, [(1, "lost"), (2, "complete")])


def test_an_attempt_that_nobody_has_gone_on_with_is_lost_when_its_instance_is_terminated() -> None:
    instance = left_behind(story())
    instance.terminate()
    assert standing(instance) == ("terminated", "cancelled", 1, [(1, "lost")])
    assert violated() == set()


def test_an_attempt_is_lost_when_its_instance_is_paused_for_other_code() -> None:
    instance = left_behind(story(), code="of another deploy")
    with running_shift():
        wait_for(instance, "paused")
    assert standing(instance) == ("paused", "waiting", 1, [(1, "lost")])


def test_a_lost_rollback_counts_with_its_attempts_only() -> None:
    instance = left_behind(
        story(), rollback="running", ends_as="errored", error={"type": "E", "message": "m"}
    )
    Attempt.objects.filter(instance=instance).update(phase="rollback")
    attempt_of(instance, status="complete", finished_at=timezone.now())
    Step.objects.filter(instance=instance).update(
        status="complete", finished_at=timezone.now(), delivery=1, output="done", rollback="running"
    )
    instance.pause()
    step = Step.objects.get(instance=instance)
    assert (step.status, step.lost, step.rollback) == ("complete", 0, "running")
    assert Attempt.objects.get(instance=instance, phase="rollback").status == "lost"


@pytest.mark.parametrize("is_known_to_live", [False, True])
def test_a_loss_counts_against_a_step_that_ran_alone_only_if_its_worker_died(is_known_to_live: bool) -> None:
    instance = leased(
        left_behind(story(), quarantined=True), status="waiting_for_pause", worker_id=DEAD_WORKER
    )
    alive = [DEAD_WORKER] if is_known_to_live else []
    with connection.cursor() as cursor:
        cursor.execute(sql.REAP, {"lease": 30, "alive": alive, "over": "[]"})
    assert standing(instance)[2:] == (1, [(1, "lost")])
    assert Attempt.objects.get(instance=instance).quarantined is not is_known_to_live
