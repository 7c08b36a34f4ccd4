"""SIGKILL of the worker around a step that uses up its attempts: the instance pauses, and decisions stay."""

from __future__ import annotations

import time

import pytest

from engine.models import Instance
from tests.process.arena import Arena, attempts, kill, wait_for, wait_until
from tests.process.program.workflows import program, strict, together, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

MOMENTS = [0.0, 0.005, 0.02, 0.1]


def is_exhausted(instance: Instance, name: str = "charge") -> bool:
    return instance.steps.filter(name=name, status="waiting", error__isnull=False).exists()


def counted(instance: Instance) -> list[str]:
    return [status for _, status in attempts(instance, "charge") if status not in ("lost", "cancelled")]


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_around_its_last_attempt_it_pauses_with_the_error_and_its_budget(
    arena: Arena, moment: float
) -> None:
    first = arena.worker("first")
    instance = program.start([strict("charge", 0.05)])
    wait_until(lambda: instance.steps.filter(name="charge", attempts=2).exists(), what="the last attempt")
    time.sleep(moment)
    kill(first)
    arena.worker("second")

    wait_for([instance], "paused")
    assert is_exhausted(instance)
    assert counted(instance) == ["errored", "errored"]
    assert instance.refresh().pause_reason["type"] == "StepExhaustedError"


def test_killed_while_another_body_runs_beside_it_pauses_and_runs_that_body_after_the_decision(
    arena: Arena,
) -> None:
    first = arena.worker("first")
    instance = program.start([together(strict("charge"), work("long", 60, 0))])
    wait_until(lambda: is_exhausted(instance), what="the used-up attempts")
    assert instance.refresh().status == "running"
    kill(first)
    arena.worker("second")

    wait_for([instance], "paused")
    assert is_exhausted(instance)
    instance.retry_step("charge", by="ada")
    wait_for([instance])
    assert counted(instance) == ["errored", "errored", "complete"]
    assert len({line.key for line in arena.ledger.lines(what="start", step="charge")}) == 1


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("decision", ["retry", "fail", "skip"])
def test_killed_after_a_decision_it_stays_decided(arena: Arena, decision: str, moment: float) -> None:
    first = arena.worker("first")
    instance = program.start([strict("charge")])
    wait_for([instance], "paused")

    if decision == "retry":
        instance.retry_step("charge", by="ada")
    elif decision == "fail":
        instance.fail_step("charge", by="ada")
    else:
        instance.skip_step("charge", output=7, by="ada")
    time.sleep(moment)
    kill(first)
    arena.worker("second")

    wait_for([instance], "complete", "errored")
    instance.refresh()
    assert instance.status == ("errored" if decision == "fail" else "complete")
    assert counted(instance) == ["errored", "errored"] + ["complete"] * (decision == "retry")
    if decision == "skip":
        assert instance.output == [7]
    step = instance.steps.get(name="charge")
    assert (step.delivery, step.finished_at is not None) == (1, True)
