"""A worker that is stopped past its lease and wakes up: it can change nothing, and goes on living usefully."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from engine.models import Attempt, Instance
from engine.steer import notify
from tests.process.arena import Arena, attempts, is_alive, kill, send, wait_for, wait_until
from tests.process.program.workflows import block, program, together, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

LEASE = 1.2
BODY = LEASE  # ends while its worker is stopped, so that the zombie wakes up with results in its hands

EVERYTHING = ("engine_instance", "engine_step", "engine_attempt", "engine_event", "engine_log")


def tables(arena: Arena) -> dict[str, list[tuple[object, ...]]]:
    with arena.connect() as connection:
        return {
            table: connection.execute(f"SELECT t::text FROM {table} t ORDER BY 1").fetchall()
            for table in EVERYTHING
        }


def stop(arena: Arena, worker: int) -> None:
    send(worker, signal.SIGSTOP)


def stop_while_it_asks(arena: Arena, worker: int) -> None:
    """Stop it with a claim on its way: the answer is there long before it can read it."""
    with arena.connect() as connection, connection.transaction():
        connection.execute("LOCK TABLE engine_instance IN EXCLUSIVE MODE")
        notify.wake()
        wait_until(lambda: "reprise claims zombie" in _sessions(arena, waits_for="Lock"))
        send(worker, signal.SIGSTOP)


# It sends its late results, and they are refused. Or it sees first that an answer took longer than its lease, and
# gives up its lock, and the results with it. What it sees first is a race where it was asking; and by chance it was.
GIVES_UP = ("lost: fenced", "the shift lost its database")


@pytest.mark.parametrize("how", [stop, stop_while_it_asks])
def test_late_results_of_a_stopped_worker_do_not_count_and_it_works_on(
    arena: Arena, how: Callable[[Arena, int], None]
) -> None:
    zombie = arena.worker("zombie", lease=LEASE)
    programs = [[body("first", BODY, 0), work("second")] for body in (work, block) for _ in range(5)]
    programs += [[together(work("left", BODY, 0), block("right", BODY, 0)), work("second")]]
    instances = program.start_many([{"params": one} for one in programs]).created
    wait_until(lambda: len(arena.ledger.lines(what="start")) == 12)

    how(arena, zombie)
    time.sleep(LEASE)  # the only way to let a lease of the database's clock pass
    other = arena.worker("other")
    wait_for(instances)
    before = tables(arena)
    ended_before = len(arena.ledger.lines(what="end", pid=zombie))
    send(zombie, signal.SIGCONT)
    wait_until(lambda: any(words in arena.output() for words in GIVES_UP), what="the end of its leases")
    # Its threads cannot be killed: what they still do must not count.
    wait_until(lambda: len(arena.ledger.lines(what="end", pid=zombie)) >= ended_before + 6)

    kill(other)
    late = program.start([work("late"), block("too")])
    wait_for([late])
    assert {line.pid for line in arena.ledger.lines(instance=late.id)} == {zombie}
    late.delete()
    assert tables(arena) == before
    assert {line.attempt for line in arena.ledger.lines(what="start", pid=other, step="first")} == {2}


def test_worker_whose_process_was_stopped_for_long_is_not_taken_for_one_that_hangs(arena: Arena) -> None:
    """Stopped, or a machine asleep, for longer than a loop may stand still."""
    worker = arena.start("worker", name="sleeper", slots=4, lease=30, stall=1.5)
    instance = program.start([work("long", 4)])
    arena.ledger.wait_for(what="start", step="long")

    send(worker, signal.SIGSTOP)
    time.sleep(4)
    send(worker, signal.SIGCONT)

    wait_for([instance])
    assert is_alive(worker)
    assert {line.attempt for line in arena.ledger.lines(step="long")} == {1}


def test_survivor_takes_over_what_a_worker_left_without_a_word(arena: Arena) -> None:
    """As after the loss of a machine: nobody tells, nobody comes in its place."""
    survivor = arena.worker("survivor")
    wait_until(lambda: "survivor" in _sessions(arena))
    first = arena.worker("first")
    send(survivor, signal.SIGSTOP)
    instance = program.start([work("long", 60, 0)])
    arena.ledger.wait_for(what="start", step="long")
    send(survivor, signal.SIGCONT)

    kill(first)

    wait_for([instance], seconds=15)  # half of its lease, for which nobody waits
    assert arena.ledger.lines(what="start", attempt=2)[0].pid == survivor


WAYS_TO_LOSE_IT: dict[str, Callable[[Arena], object]] = {
    "server restarted": lambda arena: arena.restart_database(signal.SIGINT),
    "session killed": lambda arena: arena.kill_session("reprise journal"),
    "connection cut": lambda arena: arena.cut_connection("reprise lock"),
}


@pytest.mark.parametrize("way", WAYS_TO_LOSE_IT)
def test_a_step_in_quarantine_is_not_given_up_when_its_worker_only_lost_the_database(
    arena: Arena, way: str
) -> None:
    instance = program.start([work("long", 60, 60, 60, 0)])
    Instance.objects.update(quarantined=True)
    worker = arena.worker("unlucky")
    for attempt in (1, 2, 3):  # the budget of a step that was alone
        arena.ledger.wait_for(what="start", step="long", attempt=attempt)
        assert Attempt.objects.get(number=attempt).quarantined
        WAYS_TO_LOSE_IT[way](arena)

    wait_for([instance])
    assert attempts(instance, "long") == [(1, "lost"), (2, "lost"), (3, "lost"), (4, "complete")]
    assert is_alive(worker)


def _sessions(arena: Arena, *, waits_for: str = "%") -> str:
    """Name the applications that are connected, or those that wait for this in the server."""
    query = "SELECT application_name FROM pg_stat_activity WHERE coalesce(wait_event_type, '') LIKE %s"
    with arena.connect() as connection:
        rows = connection.execute(query, [waits_for]).fetchall()
    return " ".join(name for (name,) in rows)
