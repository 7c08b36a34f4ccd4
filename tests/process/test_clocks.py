"""Clocks that are wrong: only the database's decides what is due; when that is set, no worker loses what it holds."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from django.db import connections

from engine.invariants import INVARIANTS, look
from engine.models import Attempt, Instance, Step
from studio.embedded import DATABASE
from tests.process.arena import TABLES, Arena, send, wait_for, wait_until
from tests.process.nursery import Nursery
from tests.process.program.workflows import block, event, narrow, program, sleep, together, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

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


HOUR = 3600
SHORT_LEASE = 2.0
OVERRIDDEN = ("clock_timestamp", "statement_timestamp", "now")
REAL = "SELECT pg_catalog.{name}() + last_value * interval ''1 second'' FROM sim.offset_seconds"


@pytest.fixture
def set_clock(arena: Arena) -> Iterator[Callable[[int], None]]:
    """Set the database's clock, so many seconds off; what it says of the time is looked for in search_path."""
    with arena.connect() as connection:
        connection.execute("CREATE SCHEMA sim; CREATE SEQUENCE sim.offset_seconds MINVALUE -100000")
        for name in OVERRIDDEN:
            body = REAL.format(name=name)
            connection.execute(
                f"CREATE FUNCTION sim.{name}() RETURNS timestamptz LANGUAGE sql VOLATILE AS '{body}'"
            )
        connection.execute("SELECT setval('sim.offset_seconds', 0)")
        connection.execute(f"ALTER DATABASE {DATABASE} SET search_path = sim, public, pg_catalog")
        connections["default"].close()
        try:
            yield lambda seconds: connection.execute("SELECT setval('sim.offset_seconds', %s)", [seconds])
        finally:
            connection.execute(f"ALTER DATABASE {DATABASE} RESET search_path")
            connection.execute("DROP SCHEMA sim CASCADE")
            # What was written before and after is an hour apart: their times say nothing about their order.
            connection.execute(f"TRUNCATE {TABLES} CASCADE")


@pytest.mark.parametrize(
    "jumps", [[HOUR], [-HOUR], [HOUR, 0], [-HOUR, 0]], ids=["on", "back", "on and back", "back and on"]
)
def test_where_the_databases_clock_is_set_no_body_runs_twice_and_nothing_hangs(
    arena: Arena, set_clock: Callable[[int], None], jumps: list[int]
) -> None:
    for name in ("one", "two"):
        arena.worker(name, lease=SHORT_LEASE, sweep=0.1)
    long = [together(work("async", 5), block("sync", 5)), sleep("nap", NAP), work("end")]
    begun = program.start_many([{"params": long}] * INSTANCES).created
    arena.ledger.wait_for(what="start", step="sync", instance=begun[-1].id)
    queued = narrow.start_many([{"params": [work("in its turn", 0.5)]}] * 9).created
    arena.ledger.wait_for(what="start", step="in its turn")
    for seconds in jumps:
        time.sleep(0.5)
        set_clock(seconds)
        time.sleep(1)  # a sleep ends by the clock by which it began, so the workers have to have read it
        begun.append(program.start([work("after"), sleep("short nap", NAP / 5), block("end")]))
        arena.ledger.wait_for(what="start", step="end", instance=begun[-1].id)
    wait_for([*begun, *queued])

    assert set(Attempt.objects.values_list("status", "number").distinct()) == {("complete", 1)}
    started = Counter((line.instance, line.step) for line in arena.ledger.lines(what="start"))
    assert set(started.values()) == {1}
    with arena.connect() as connection:
        found = [look(connection.cursor(), one, skew=2 * HOUR) for one in INVARIANTS]
    assert [one for one in found if one.count] == []


def test_a_worker_that_is_stopped_loses_what_it_holds_also_where_the_clock_was_set_back(
    arena: Arena, set_clock: Callable[[int], None]
) -> None:
    """By that clock its leases last for another hour."""
    stopped = arena.worker("stopped", lease=SHORT_LEASE)
    instance = program.start([work("long", 60, 0)])
    arena.ledger.wait_for(what="start", step="long")
    send(stopped, signal.SIGSTOP)
    set_clock(-HOUR)
    arena.worker("other", lease=SHORT_LEASE, sweep=0.1)
    wait_for([instance], seconds=20)
    assert list(Attempt.objects.order_by("number").values_list("status", flat=True)) == ["lost", "complete"]
    assert Instance.objects.get().fence == 2
