"""SIGKILL of the worker after `retry_now` and `wake_now`: what people ended early stays ended."""

from __future__ import annotations

import time

import pytest

from engine.models import Instance
from tests.process.arena import Arena, attempts, kill, wait_for, wait_until
from tests.process.program.workflows import Op, patient, program, sleep, together, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

MOMENTS = [0.0, 0.005, 0.02, 0.1, 0.3]


def held(arena: Arena, op: Op) -> tuple[int, Instance]:
    """Let a worker hold an instance in which the operation waits beside a body."""
    first = arena.worker("first")
    instance = program.start([together(op, work("long", 60, 0))])
    wait_until(
        lambda: instance.steps.filter(name=op.name, status="waiting").exists(), what="the wait of the step"
    )
    assert instance.refresh().status == "running"
    return first, instance


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_after_retry_now_the_attempt_is_made_elsewhere(arena: Arena, moment: float) -> None:
    first, instance = held(arena, patient("mail", 0, 0.1, 0))

    instance.retry_now(by="ada")
    time.sleep(moment)
    kill(first)
    arena.worker("second")

    wait_for([instance])
    made = attempts(instance, "mail")
    assert [status for _, status in made if status != "lost"] == ["errored", "complete"]
    assert len(made) <= 3
    assert instance.refresh().output == [[made[-1][0], 2]]
    assert len({line.key for line in arena.ledger.lines(what="start", step="mail")}) == 1


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_after_wake_now_the_sleep_has_ended(arena: Arena, moment: float) -> None:
    first, instance = held(arena, sleep("nap", 3600))

    instance.wake_now(by="ada")
    time.sleep(moment)
    kill(first)
    arena.worker("second")

    wait_for([instance])
    assert instance.refresh().output == [[None, 2]]


def test_killed_before_a_worker_has_claimed_it_a_parked_instance_is_retried(arena: Arena) -> None:
    first = arena.worker("first")
    instance = program.start([patient("mail", 0, 0)])
    wait_for([instance], "waiting")
    kill(first)

    instance.retry_now(by="ada")
    arena.worker("second")

    wait_for([instance])
    assert attempts(instance, "mail") == [(1, "errored"), (2, "complete")]
