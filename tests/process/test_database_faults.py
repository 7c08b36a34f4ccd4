"""What databases do to workers: sessions ended at random, long row locks, no connection left, deadlocks."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict

import psycopg
import pytest
from django.db import OperationalError, connections

from engine.models import Attempt, Event, Instance
from tests.process.arena import PATIENCE, Arena, is_alive, wait_for, wait_until
from tests.process.nursery import Nursery
from tests.process.program.workflows import Op, block, event, program, sleep, together, work
from tests.process.test_database_restart import assert_steps_ran_as_recorded

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

KILLING_SECONDS = float(os.environ.get("REPRISE_KILLING_SECONDS", "4"))
KILLS_A_SECOND = 5
RETURN_SECONDS = 15.0  # half a lease: nothing waits for it
LEASE = 1.5
RACING_SECONDS = 2.0

STEPS: list[Op] = [
    work("a", 0.05),
    together(work("b", 0.2), block("c", 0.1), sleep("nap", 0.3)),
    event("go"),
    *(work(f"step {number}", 0.05) for number in range(5)),
    block("end"),
]

# The sessions that work on instances or ask for work; not the test's own.
VICTIMS = """
    SELECT pid FROM pg_stat_activity
    WHERE starts_with(application_name, 'reprise') AND application_name <> 'reprise-command'
"""


def test_sessions_ended_at_random_for_seconds_cost_nothing_that_was_accepted(arena: Arena) -> None:
    cluster = arena.cluster()
    count = int(KILLING_SECONDS * 15)
    steps = [asdict(op) for op in STEPS]
    pause = KILLING_SECONDS / count / 2
    starter = arena.start("starter", prefix="late", count=count, params=steps, pause=pause)
    names = [f"late-{number}" for number in range(count)]
    arena.ledger.wait_for(what="accepted", instance=names[count // 4])
    sender = arena.start("events", instances=names[: count // 4], type="go", pause=pause)
    long = program.start([work("outlives the killing", KILLING_SECONDS)])

    killed = end_sessions(arena, KILLING_SECONDS, at_least=int(KILLING_SECONDS * KILLS_A_SECOND / 3))
    probe = program.start([work("probe")])
    arena.ledger.wait_for(what="start", instance=probe.id, seconds=RETURN_SECONDS)
    wait_until(lambda: not is_alive(starter) and not is_alive(sender), what="the clients' end")
    for one in Instance.objects.filter(id__in=names[count // 4 :]):
        one.send_event("go", one.id)

    everybody = list(Instance.objects.all())
    assert {one.id for one in everybody} == {long.id, probe.id, *names}
    wait_for(everybody)
    assert Event.objects.filter(state="consumed").count() == count == Event.objects.count()
    assert_steps_ran_as_recorded(arena)
    print(f"{killed} sessions ended, {lost_attempts()} attempts lost of {Attempt.objects.count()}")
    assert cluster.poll() is None


def end_sessions(arena: Arena, seconds: float, *, at_least: int) -> int:
    """End sessions for so long, and until a body was interrupted: a busy machine starts workers late."""
    rng = random.Random(5)
    killed = 0
    ends_at = time.monotonic() + seconds
    with arena.connect() as connection:
        while time.monotonic() < ends_at or killed < at_least or not lost_attempts():
            assert time.monotonic() < ends_at + PATIENCE, "no body was interrupted: the test proves nothing"
            sessions = connection.execute(VICTIMS).fetchall()
            if sessions:
                connection.execute("SELECT pg_terminate_backend(%s)", rng.choice(sessions))
                killed += 1
            time.sleep(1 / KILLS_A_SECOND)
    return killed


def lost_attempts() -> int:
    return Attempt.objects.filter(status="lost").count()


def test_rows_locked_for_longer_than_a_lease_delay_their_instances_only(arena: Arena) -> None:
    """By a transaction that never ends, and by a sender's."""
    for name in ("one", "two"):
        arena.worker(name, lease=LEASE)
    parked = program.start([event("go"), work("after")])
    # Long enough to be under way when the rows are locked, and over before they are free.
    busy, sent = (program.start([work("first", LEASE), event("go"), work("after")]) for _ in range(2))
    wait_for([parked], "waiting")
    for one in (parked, busy):
        one.send_event("go", one.id)
    with arena.connect() as connection, connection.transaction(), arena.holding(sent):
        keys = [parked.key, busy.key]
        query = "SELECT FROM engine_instance WHERE key = ANY (%s) FOR UPDATE"
        connection.execute(query, [keys])
        held_at = time.monotonic()
        while time.monotonic() < held_at + 2 * LEASE:
            neighbours = program.start_many([{"params": [work("a"), block("b")]}] * 5).created
            wait_for(neighbours)
        done = Instance.objects.filter(key__in=[*keys, sent.key], status="complete")
        assert not done.exclude(key=parked.key).exists()
    wait_for([parked, busy, sent])


def test_a_sender_whose_transaction_is_open_past_the_lease_loses_no_attempt(arena: Arena) -> None:
    """While it is open, nothing renews the lease; when it ends, any worker's sweep could come first."""
    for name in ("one", "two"):
        arena.worker(name, lease=LEASE, sweep=0.05)
    instances = [program.start([work("long", 3 * LEASE), event("go")]) for _ in range(6)]
    wait_until(lambda: len(arena.ledger.lines(what="start")) == len(instances), what="bodies")
    with arena.holding(*instances):
        time.sleep(1.5 * LEASE)
    wait_for(instances)
    assert set(Attempt.objects.values_list("status", "number")) == {("complete", 1)}
    assert len(arena.ledger.lines(what="start")) == len(instances)


def test_without_a_connection_left_starts_fail_clearly_and_work_goes_on_when_there_is_one(
    arena: Arena,
) -> None:
    worker = arena.worker("one")
    instance = program.start([work("long", 60, 0), work("after")])
    arena.ledger.wait_for(what="start", step="long")
    connections["default"].close()
    with ExitStack() as taken:
        control = take_every_connection(arena, taken)
        control.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'reprise%'"
        )
        take_every_connection(arena, taken)
        with pytest.raises(OperationalError, match="too many clients"):
            program.start([work("never")], id="never")
        time.sleep(1.5)  # the worker tries in vain
    released_at = time.monotonic()
    again = arena.ledger.wait_for(what="start", step="long", attempt=2)
    assert again.at - released_at < RETURN_SECONDS
    wait_for([instance])
    assert not Instance.objects.filter(id="never").exists()
    assert is_alive(worker)


def take_every_connection(arena: Arena, taken: ExitStack) -> psycopg.Connection:
    """Connect until the server takes no more, and again, for who is about to go; return the first connection."""
    mine = []
    ends_at = None
    while ends_at is None or time.monotonic() < ends_at:
        try:
            mine.append(taken.enter_context(arena.connect()))
        except psycopg.OperationalError:  # of which kind, the start that fails will tell
            ends_at = ends_at or time.monotonic() + 0.3
    return mine[0]


@pytest.fixture
def crowd(arena: Arena) -> Iterator[Nursery]:
    """Processes that call the engine."""
    module = "tests.faults.parts"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    nursery = Nursery(arena.launch("-m", "tests.process.nursery", module, **pipes))
    yield nursery
    nursery.close()


def test_calls_of_the_engine_do_not_deadlock_whatever_they_race_with(arena: Arena, crowd: Nursery) -> None:
    before = deadlocks(arena)  # the server is that of other tests, too
    race(arena, crowd, is_sorted=True)
    assert arena.ledger.lines(what="undone") == []
    assert deadlocks(arena) == before


def test_deadlocks_of_callers_undo_nothing_but_what_is_tried_again(arena: Arena, crowd: Nursery) -> None:
    """Two transactions that each send to the same two instances deadlock in opposite orders; no worker ever does.

    Who waits for one row between them may be the one that is undone.
    """
    before = deadlocks(arena)
    undone = 0
    ends_at = time.monotonic() + PATIENCE
    while not undone:  # few transactions are open at once where a machine is busy
        assert time.monotonic() < ends_at, "nothing deadlocked: the test proves nothing"
        race(arena, crowd, is_sorted=False)
        undone = len(arena.ledger.lines(what="undone"))
    assert deadlocks(arena) - before == undone
    assert "deadlock" not in arena.output()


def race(arena: Arena, crowd: Nursery, *, is_sorted: bool) -> None:
    """Senders to two instances at once, operators, and batches of starts, while workers run what they concern."""
    for name in ("one", "two"):
        arena.worker(name)
    steps = [*(work(f"step {number}", 0.05) for number in range(20)), event("last")]
    instances = program.start_many([{"params": steps}] * 6).created
    names = [one.id for one in instances]
    # Of two instances there are but two orders, so that also the few transactions of a busy machine deadlock.
    sent_to = names if is_sorted else names[:2]
    processes = [
        *(
            crowd.start(
                "pair_sender", seed=seed, instances=sent_to, seconds=RACING_SECONDS, is_sorted=is_sorted
            )
            for seed in range(3)
        ),
        crowd.start("operator", seed=7, instances=names, seconds=RACING_SECONDS),
        *(crowd.start("batch_starter", seed=seed, count=30, seconds=RACING_SECONDS) for seed in (8, 9)),
    ]
    wait_until(lambda: not any(map(is_alive, processes)), what="the end of the race")
    for one in instances:
        one.resume()
        one.send_event("last", one.id)
    wait_for(list(Instance.objects.all()))

    sent = Counter()
    for line in arena.ledger.lines(what="sent"):
        sent.update([line.instance, line.step])
    assert sent == Counter(Event.objects.filter(type="news").values_list("instance__id", flat=True))


def deadlocks(arena: Arena) -> int:
    return arena.server.log.read_text(errors="replace").count("ERROR:  deadlock detected")
