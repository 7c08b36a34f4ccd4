"""What a dead worker held is taken back at once, also where somebody holds the row at that moment."""

from __future__ import annotations

import time
from threading import Event, Thread

import pytest
from django.db import connection, transaction

from engine import WorkflowStep, workflow
from engine.models import Instance
from engine.notify import REAP
from engine.worker import claims
from tests.integration.rows import leased
from tests.shifts import running_shift, wait_for

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")

DEAD_SEAT = 4_242


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
        left = leased(Instance.objects.create(workflow=story.name, id="left", params={}), seat=DEAD_SEAT)
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


def _hold(instance: Instance, locked: Event, release: Event) -> None:
    try:
        with transaction.atomic():
            Instance.objects.select_for_update().get(key=instance.key)
            locked.set()
            release.wait(60)
    finally:
        connection.close()
