"""Workers whose clocks are wrong: only the database's clock decides what is due, and who holds what."""

from __future__ import annotations

import subprocess
from collections import Counter

import pytest

from engine.models import Attempt, Step
from tests.process.arena import Arena, wait_for, wait_until
from tests.process.nursery import Nursery
from tests.process.program.workflows import block, event, program, sleep, together, work

pytestmark = [pytest.mark.process]

OFF_BY = (90.0, -90.0)
LEASE = 1.5
NAP = 1.0
INSTANCES = 5  # to begin with, for each worker


def test_workers_whose_clocks_are_off_by_ninety_seconds_keep_leases_and_sleeps(arena: Arena) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    nursery = Nursery(arena.launch("-m", "tests.process.nursery", "tests.faults.parts", **pipes))
    steps = [
        together(block("longer than a lease", 2 * LEASE), sleep("nap", NAP)),
        sleep("short nap", NAP / 5),
        event("go"),
        work("end"),
    ]
    instances = []
    for number, seconds in enumerate(OFF_BY, start=1):
        name = f"off by {seconds:g}"
        nursery.start("worker_off_by", seconds=seconds, name=name, slots=INSTANCES, lease=LEASE)
        wait_until(lambda name=name: is_there(arena, name), what=name)
        instances += program.start_many([{"params": steps}] * INSTANCES).created
        wait_until(lambda number=number: Attempt.objects.count() == number * INSTANCES, what="bodies")
    for one in instances:
        one.send_event("go", one.id)
    wait_for(instances, seconds=20)
    nursery.close()

    assert Counter(Attempt.objects.values_list("status", flat=True)) == {"complete": 2 * len(instances)}
    workers = set(Attempt.objects.values_list("worker", flat=True))
    assert workers == {f"off by {seconds:g}" for seconds in OFF_BY}, (
        "one did nothing: the test proves nothing"
    )
    for name, seconds in (("nap", NAP), ("short nap", NAP / 5)):
        slept = [(one.finished_at - one.started_at).total_seconds() for one in Step.objects.filter(name=name)]
        assert len(slept) == len(instances)
        assert seconds <= min(slept)
        assert max(slept) < seconds + 2


def is_there(arena: Arena, name: str) -> bool:
    query = "SELECT FROM pg_stat_activity WHERE application_name = %s"
    with arena.connect() as connection:
        return bool(connection.execute(query, [f"reprise journal {name}"]).fetchall())
