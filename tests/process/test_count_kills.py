"""SIGKILL while ends are counted and counts are added up: each end is counted once."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from engine.models import Instance, WorkflowCountDelta
from engine.status.series import series
from engine.steer import workflow_counts
from engine.steer.clock import database_time
from tests.counted import counted, miscounted
from tests.process.arena import Arena, kill, wait_until
from tests.process.program.workflows import doomed, program, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

COUNT = 300


def test_ends_are_counted_once_whenever_the_worker_that_writes_them_dies(arena: Arena) -> None:
    program.start_many([{"params": [work("one", 0.01)]}] * COUNT)
    doomed.start_many([{"params": "no"}] * COUNT)
    for number in range(5):
        worker = arena.worker(f"worker {number}", lease=2.0)
        ended = Instance.objects.exclude(finished_at=None).count()
        wait_until(
            lambda ended=ended: Instance.objects.exclude(finished_at=None).count() > ended + 20,
            what="the end of some",
        )
        kill(worker)
        workflow_counts.fold()
        assert miscounted() == []
    arena.worker("last")
    wait_until(lambda: not Instance.objects.open().exists(), what="the end of all")
    assert miscounted() == []
    assert counted()["program", "started"] == COUNT
    now = database_time()
    told = series(["program"], since=now - timedelta(hours=1), until=now, span=timedelta(minutes=1)).total
    assert (told.started, told.complete) == (COUNT, COUNT)


def test_changes_are_added_once_whenever_the_process_that_adds_them_dies(arena: Arena) -> None:
    for _ in range(COUNT):
        program.start([])
    before = counted()
    for number in range(5):
        left = WorkflowCountDelta.objects.count()
        adder = arena.start("adder")
        wait_until(
            lambda left=left: WorkflowCountDelta.objects.count() < left - 20, what="the adding up of some"
        )
        time.sleep(0.001 * number)
        kill(adder)
        assert counted() == before
    assert WorkflowCountDelta.objects.exists(), "it was not interrupted"
    workflow_counts.fold()
    assert (counted(), WorkflowCountDelta.objects.count()) == (before, 0)
