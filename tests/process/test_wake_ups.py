"""No wake-up is lost between a sender and an instance that parks, and no sender holds up the neighbours."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from engine.models import Event, Instance
from tests.process.arena import Arena, wait_for, wait_until
from tests.process.program.workflows import event, program, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

INSTANCES = 150
SENDERS = 3
PARKING_SECONDS = 0.02  # after the start of a body that takes half as long

NEVER = 3600.0  # for the sweeps of a shift, which would make good a wake-up that got lost
CALM_SECONDS = 1.5


def test_events_sent_while_instances_park_wake_every_one_of_them(arena: Arena) -> None:
    for name in ("one", "two"):
        arena.worker(name, sweep=NEVER)
    # Each sender has one instance on its way to parking at a time: with more it would always come too late.
    steps = [asdict(op) for op in (work("ready", PARKING_SECONDS / 2), event("go"), work("done"))]
    for seed in range(SENDERS):
        options = {"count": INSTANCES // SENDERS, "params": steps, "type": "go", "after": PARKING_SECONDS}
        arena.start("sender", seed=seed, **options)
    wait_until(lambda: len(arena.ledger.lines(what="sent")) == INSTANCES, seconds=180, what="all being sent")

    instances = list(Instance.objects.all())
    wait_for(instances)
    assert Event.objects.filter(state="consumed").count() == INSTANCES
    assert {one.id: one.output for one in Instance.objects.all()} == {
        one.id: [1, one.id, 1] for one in instances
    }
    # The test proves something only where both happened.
    parked = Instance.objects.filter(fence__gt=1).count()
    assert INSTANCES / 10 < parked < INSTANCES * 9 / 10


def test_open_transaction_of_a_sender_delays_its_instance_only(arena: Arena) -> None:
    arena.worker("one", sweep=NEVER)
    held = program.start([work("before"), event("go"), work("after")])
    wait_for([held], "waiting")
    busy = program.start([work("first", 0.4), work("second")])
    arena.ledger.wait_for(what="start", instance=busy.id)
    with arena.holding(held, busy):
        neighbours = program.start_many([{"params": [work("a"), work("b"), work("c")]}] * 20).created
        wait_for(neighbours)
        assert arena.ledger.lines(what="start", instance=busy.id, step="second") == []
    wait_for([held, busy])


def test_due_instance_that_a_sender_holds_keeps_no_worker_busy(arena: Arena) -> None:
    held = program.start([work("first")])
    with arena.holding(held):
        worker = arena.worker("one")
        wait_for([program.start([work("first")])])  # it has begun, and found the other one due, too
        before = cpu_seconds(worker)
        time.sleep(CALM_SECONDS)
        assert cpu_seconds(worker) - before < CALM_SECONDS / 4
    wait_for([held])


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    user, system = int(fields[11]), int(fields[12])
    return (user + system) / os.sysconf("SC_CLK_TCK")
