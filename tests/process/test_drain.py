"""SIGTERM: bodies that end within the grace are recorded, the others are given back, and nothing is spent."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import pytest

from engine.models import Step
from tests.process.arena import Arena, attempts, is_alive, wait_for, wait_until
from tests.process.program.workflows import block, program, together, work

pytestmark = [pytest.mark.process, pytest.mark.first_tier]

GRACE = 1.5


def stop(worker: int) -> float:
    """Ask the worker to stop; return how long it took."""
    began = time.monotonic()
    os.kill(worker, signal.SIGTERM)
    wait_until(lambda: not is_alive(worker), seconds=60, what="the end of a draining worker")
    return time.monotonic() - began


def test_bodies_end_within_the_grace_and_longer_ones_go_on_at_the_next_start(arena: Arena) -> None:
    worker = arena.start("worker", name="first", slots=64, lease=30, grace=GRACE)
    once = [replace(body("long", 60, 0), max_attempts=1) for body in (work, block)]
    short = program.start_many(
        [{"params": [body("short", 0.7), work("after")]} for body in (work, block)]
    ).created
    long = program.start_many([{"params": [one, work("after")]} for one in once]).created
    mixed = program.start([together(work("short", 0.7), block("long", 60, 0)), work("after")])
    wait_until(lambda: len(arena.ledger.lines(what="start")) == 6)

    assert GRACE < stop(worker) < 30  # the bodies take 60
    for instance in (*short, *long, mixed):
        assert instance.refresh().status == "queued"
        assert not Step.objects.filter(instance=instance, name="after").exists()
    for instance in (*short, mixed):
        assert attempts(instance, "short") == [(1, "complete")]
    for instance in (*long, mixed):
        assert attempts(instance, "long") == [(1, "cancelled")]

    arena.worker("second")
    wait_for([*short, *long, mixed])
    for instance in (*long, mixed):
        assert attempts(instance, "long") == [(1, "cancelled"), (2, "complete")]
    assert not Step.objects.filter(lost__gt=0).exists()
    assert len(arena.ledger.lines(what="start", step="short")) == 3


def test_idle_worker_stops_at_once(arena: Arena) -> None:
    worker = arena.worker("idle")
    wait_for([program.start([work("only")])])

    assert stop(worker) < 8  # the grace is 10


def test_pause_asked_for_while_the_worker_drains_is_kept(arena: Arena) -> None:
    worker = arena.start("worker", name="first", slots=64, lease=30, grace=GRACE)
    instance = program.start([work("first", 1.0), work("second")])
    arena.ledger.wait_for(what="start", step="first")
    os.kill(worker, signal.SIGTERM)
    time.sleep(0.5)  # its shift freezes what it holds

    assert instance.pause().status == "waiting_for_pause"

    wait_until(lambda: not is_alive(worker))
    assert instance.refresh().status == "paused"
    assert attempts(instance, "first") == [(1, "complete")]
    arena.worker("second")
    instance.resume()
    wait_for([instance])
