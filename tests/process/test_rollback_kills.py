"""SIGKILL of a worker amid rollbacks: they go on elsewhere where they were, in their order, each to its end once."""

from __future__ import annotations

import pytest

from engine.models import Attempt, Instance
from tests.process.arena import Arena, kill, wait_for, wait_until
from tests.process.program.workflows import event, fail, order, program

pytestmark = [pytest.mark.process, pytest.mark.first_tier]

LONG = 60.0


def undone(arena: Arena, instance: Instance) -> list[str]:
    return [line.step for line in arena.ledger.lines(what="undone", instance=instance.id)]


def attempts(instance: Instance) -> list[tuple[int, int, str]]:
    rows = Attempt.objects.filter(instance=instance, phase="rollback").order_by("-step_seq", "number")
    return list(rows.values_list("step_seq", "number", "status"))


def test_killed_amid_a_rollback_that_one_runs_again_and_no_other(arena: Arena) -> None:
    """Guarantee 15: with the key that it had; what was undone stays undone"""
    first = arena.worker("first")
    instance = program.start([order("a"), order("b", LONG, 0), order("c"), fail()])
    begun = arena.ledger.wait_for(what="undo", step="b")

    kill(first)
    arena.worker("second")

    again = arena.ledger.wait_for(what="undo", step="b", attempt=2)
    assert (again.key, begun.pid) == (begun.key, first)
    assert again.key != arena.ledger.lines(what="start", step="b")[0].key
    wait_for([instance], "errored")
    assert undone(arena, instance) == ["c", "b", "a"]
    assert attempts(instance) == [(3, 1, "complete"), (2, 1, "lost"), (2, 2, "complete"), (1, 1, "complete")]
    assert (instance.refresh().status, instance.rollback) == ("errored", "complete")
    assert instance.error["message"] == "as the program says"


def test_terminated_with_rollback_when_no_process_is_left(arena: Arena) -> None:
    """CF-88: whoever comes next finds the functions by a replay, also of what was paused"""
    first = arena.worker("first")
    instances = program.start_many([{"params": [order("a"), order("b"), event("never")]}] * 2).created
    wait_until(lambda: Instance.objects.filter(status="waiting").count() == 2)
    instances[0].pause()
    kill(first)

    for instance in instances:
        assert instance.terminate(rollback=True).status == "queued"
    arena.worker("second")

    wait_for(instances, "terminated")
    for instance in instances:
        assert (instance.refresh().status, instance.rollback) == ("terminated", "complete")
        assert undone(arena, instance) == ["b", "a"]
        assert len(arena.ledger.lines(what="start", instance=instance.id)) == 2
