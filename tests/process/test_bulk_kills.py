"""SIGKILL of one worker after another while a bulk job runs: each item is done once, and nothing else is held up."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from engine import bulk
from engine.bulk import Job
from engine.models import Audit, Instance, Step
from tests.process.arena import Arena, kill, wait_for, wait_until
from tests.process.program.workflows import event, program, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

COUNT = 300
KILLS = 3


def kill_workers_of(job: Job, arena: Arena, *, seed: int) -> None:
    """Start two workers, and kill one and start another whenever the job is further."""
    dice = random.Random(seed)
    victims = [arena.worker(f"worker {number}") for number in range(2)]
    killed_at = list[int]()
    for number in range(KILLS):
        before = killed_at[-1] if killed_at else 0
        wait_until(lambda before=before: bulk.get(job.id).done > before, what="the next batch")
        time.sleep(dice.uniform(0.0, 0.3))
        killed_at.append(bulk.get(job.id).done)
        kill(victims.pop(0 if number % 2 else -1))
        victims.append(arena.worker(f"next {number}"))
    assert any(0 < done < COUNT for done in killed_at), f"no kill hit the middle of the job: {killed_at}"


def test_whatever_is_killed_each_instance_is_restarted_once(arena: Arena) -> None:
    items = program.start_many([{"params": [event("go")]}] * COUNT).created
    for one in items:
        one.terminate()
    job = bulk.start("restart", "status:terminated", by="ana", reason="after the outage")
    kill_workers_of(job, arena, seed=7)
    other = program.start([work("meanwhile", 0.0)])
    wait_for([other])
    wait_until(lambda: bulk.get(job.id).status == "complete", seconds=180, what="the end of the job")

    found = bulk.get(job.id)
    assert (found.total, found.done, found.skipped, found.failed) == (COUNT, COUNT, 0, 0)
    keys = [one.key for one in items]
    assert set(Instance.objects.filter(key__in=keys).values_list("generation", flat=True)) == {2}
    rows = Audit.objects.filter(instance_key__in=keys, verb="restart", actor="ana", reason="after the outage")
    assert rows.count() == COUNT
    worker = Instance.objects.get(workflow="reprise.bulk", id=job.id)
    batches = Step.objects.filter(instance_id=worker.key, name="batch")
    assert set(batches.values_list("status", flat=True)) == {"complete"}


def test_aborted_in_the_middle_what_was_done_stays_and_the_rest_is_as_it_was(arena: Arena) -> None:
    items = program.start_many([{"params": [event("go")]}] * COUNT).created
    keys = [one.key for one in items]
    for one in items:
        one.terminate()
    job = bulk.start("restart", "status:terminated", by="ben")
    arena.worker("one")
    wait_until(lambda: bulk.get(job.id).done > 0, what="the first batch")
    aborted = bulk.abort(job.id)
    assert aborted.status == "aborted"
    wait_until(lambda: not Instance.objects.filter(workflow="reprise.bulk", owner__isnull=False).exists())

    assert bulk.get(job.id) == aborted
    assert 0 < aborted.done < COUNT
    assert Instance.objects.filter(key__in=keys, generation=2).count() == aborted.done
    assert Audit.objects.filter(instance_key__in=keys, verb="restart", actor="ben").count() == aborted.done


def test_whatever_is_killed_each_instance_is_started_once(arena: Arena) -> None:
    items: list[Any] = [{"params": [work(f"w-{n}", 0.0)], "id": f"w-{n}"} for n in range(COUNT)]
    job = bulk.start_many(program, items, by="ana")
    kill_workers_of(job, arena, seed=11)
    wait_until(lambda: bulk.get(job.id).status == "complete", seconds=180, what="the end of the job")

    found = bulk.get(job.id)
    assert (found.total, found.done, found.skipped, found.failed) == (COUNT, COUNT, 0, 0)
    started = Instance.objects.of_users()
    assert {one.id for one in started} == {f"w-{n}" for n in range(COUNT)}
    assert Audit.objects.filter(verb="start", workflow=program.name, actor="ana").count() == COUNT
    wait_for([*started])
