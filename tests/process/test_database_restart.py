"""PostgreSQL crashes, or is restarted, under a running cluster with load: nothing accepted is lost."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict

import pytest

from engine.models import Attempt, Event, Instance, Step
from tests.process.arena import Arena, is_alive, wait_for, wait_until
from tests.process.program.workflows import Op, block, event, program, sleep, together, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

RETURN_SECONDS = 15.0  # from the server's return to the first body; half a lease, since nothing waits for one
INSTANCES = 80
LATE = 20  # started while the server goes away and comes back
NAP = 1.5

STEPS: list[Op] = [
    work("a", 0.05),
    block("b", 0.1),
    together(work("c", 0.3), block("d", 0.3), sleep("nap", NAP)),
    event("go"),
    *(work(f"step {number}", 0.1) for number in range(10)),
    sleep("last nap", 0.2),
    block("end", 0.05),
]


FAULTS: dict[str, Callable[[Arena], float]] = {
    "immediate": lambda arena: arena.restart_database(signal.SIGQUIT),
    "fast": lambda arena: arena.restart_database(signal.SIGINT),
    "session killed": lambda arena: arena.kill_session("reprise journal"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_accepted_is_lost_when_the_database_restarts_under_load(arena: Arena, fault: str) -> None:
    cluster = arena.cluster()
    started = program.start_many([{"params": STEPS}] * INSTANCES).created
    names = [one.id for one in started]
    sender = arena.start("events", instances=names, type="go", pause=0.02)
    steps = [asdict(op) for op in STEPS if op.kind != "event"]
    starter = arena.start("starter", prefix="late", count=LATE, params=steps, pause=0.1)

    for _ in range(2 if fault == "immediate" else 1):
        time.sleep(1.2)  # until all are running
        recorded = completed_bodies()
        returned_at = FAULTS[fault](arena)
        assert recorded.items() <= completed_bodies().items()
        wait_until(
            lambda at=returned_at: began_since(arena, at),
            seconds=RETURN_SECONDS,
            what="a body after the return",
        )
    wait_until(lambda: not is_alive(sender) and not is_alive(starter), what="the end of the clients")

    accepted = {line.instance for line in arena.ledger.lines(what="accepted")}
    assert accepted == {f"late-{number}" for number in range(LATE)}
    everybody = list(Instance.objects.all())
    assert {one.id for one in everybody} == {*names, *accepted}
    wait_for(everybody)
    assert Event.objects.filter(state="consumed").count() == INSTANCES == Event.objects.count()
    assert Attempt.objects.filter(status="lost").exists(), "no body was interrupted: the test proves nothing"
    # No worker died, so nothing had to run alone, one after the other.
    assert not Attempt.objects.filter(quarantined=True).exists()
    assert_steps_ran_as_recorded(arena)
    assert_sleeps_were_not_cut_short()
    assert cluster.poll() is None


def completed_bodies() -> dict[tuple[int, int], tuple[str, object]]:
    rows = Step.objects.filter(kind="do", status="complete")
    return {
        (key, seq): (str(at), output)
        for key, seq, at, output in rows.values_list("instance_id", "seq", "finished_at", "output")
    }


def began_since(arena: Arena, at: float) -> bool:
    return any(line.at > at for line in arena.ledger.lines(what="start"))


def assert_steps_ran_as_recorded(arena: Arena) -> None:
    """No attempt ran twice, none ran that is not recorded, and none after the one that completed."""
    ran = Counter((line.instance, line.step, line.attempt) for line in arena.ledger.lines(what="start"))
    assert set(ran.values()) == {1}
    names = {(step.instance_id, step.seq): step.name for step in Step.objects.all()}
    recorded = {
        (one.instance.id, names[one.instance_id, one.step_seq], one.number): one.status
        for one in Attempt.objects.select_related("instance")
    }
    assert ran.keys() <= recorded.keys()
    assert {key for key, status in recorded.items() if status == "complete"} <= ran.keys()
    keys = {(line.instance, line.step): line.key for line in arena.ledger.lines(what="start")}
    assert all(keys[line.instance, line.step] == line.key for line in arena.ledger.lines(what="start"))


def assert_sleeps_were_not_cut_short() -> None:
    naps = Step.objects.filter(name="nap")
    assert min((nap.finished_at - nap.started_at).total_seconds() for nap in naps) >= NAP
