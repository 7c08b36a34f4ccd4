"""Brief errors cost nothing: a table locked for seconds, statements that are cancelled, no connection left."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connections

from engine.models import Attempt, Instance
from studio.embedded import DATABASE
from tests.process.arena import Arena, is_alive, wait_for, wait_until
from tests.process.program.workflows import Family, Op, block, family, program, sleep, together, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

LOCKED_SECONDS = 5.0
CANCELLING_SECONDS = 3.0
INSTANCES = 20
STEPS: list[Op] = [
    together(work("long", LOCKED_SECONDS + 1), block("blocking", LOCKED_SECONDS - 2), sleep("nap", 0.3)),
    *(op for number in range(5) for op in (work(f"work {number}", 0.05), sleep(f"nap {number}", 0.2))),
    block("end"),
]


@contextmanager
def load(arena: Arena) -> Iterator[None]:
    """Two workers with long bodies, timers, starts and children, while the block does something to the database.

    Whatever that was, no body was begun twice.
    """
    workers = [arena.worker(name) for name in ("one", "two")]
    program.start_many([{"params": STEPS}] * INSTANCES)
    for kind in ("run", "parallel"):
        family.start(Family(kind, 3, [work("in a child", 0.5), sleep("nap", 0.5), block("end")]))
    late = arena.start(
        "starter", prefix="late", count=20, params=[{"kind": "work", "name": "late"}], pause=0.3
    )
    arena.ledger.wait_for(what="start", step="long")
    yield
    wait_until(lambda: not is_alive(late), what="the end of who starts")
    connections["default"].close()  # it may have been ended meanwhile
    wait_for(list(Instance.objects.all()))
    assert set(Attempt.objects.values_list("status", "number").distinct()) == {("complete", 1)}
    started = Counter((line.instance, line.step) for line in arena.ledger.lines(what="start"))
    assert set(started.values()) == {1}
    assert all(map(is_alive, workers))


@contextmanager
def defaults(arena: Arena, **limits: str) -> Iterator[None]:
    """Let the database set limits for every new session, as administrators do."""
    with arena.connect() as connection:
        for name, value in limits.items():
            connection.execute(f"ALTER DATABASE {DATABASE} SET {name} = '{value}'")
        try:
            yield
        finally:
            for name in limits:
                connection.execute(f"ALTER DATABASE {DATABASE} RESET {name}")
            connections["default"].close()


@pytest.mark.parametrize(
    "limits", [{}, {"lock_timeout": "500ms", "statement_timeout": "1s"}], ids=["", "limits"]
)
def test_a_table_that_a_migration_locks_for_seconds_costs_no_attempt(
    arena: Arena, limits: dict[str, str]
) -> None:
    with arena.connect() as connection, defaults(arena, **limits), load(arena):
        time.sleep(0.5)
        with connection.transaction(force_rollback=True):
            connection.execute("SET lock_timeout = 0; SET statement_timeout = 0")
            connection.execute("ALTER TABLE engine_instance ADD COLUMN another integer")
            time.sleep(LOCKED_SECONDS)


def test_sessions_that_a_role_ends_when_they_are_idle_are_kept(arena: Arena) -> None:
    with (
        defaults(arena, idle_session_timeout="300ms", idle_in_transaction_session_timeout="300ms"),
        load(arena),
    ):
        time.sleep(1)


def test_statements_that_are_cancelled_at_random_cost_no_attempt(arena: Arena) -> None:
    """As by an administrator who kills long statements, or a conflict with another transaction."""
    query = """
        SELECT pid FROM pg_stat_activity
        WHERE application_name LIKE 'reprise %' AND state = 'active' AND pg_cancel_backend(pid)
    """
    rng, cancelled = random.Random(3), 0
    with arena.connect() as connection, load(arena):
        ends_at = time.monotonic() + CANCELLING_SECONDS
        while time.monotonic() < ends_at:
            with connection.transaction():  # so that there is something to cancel
                connection.execute("LOCK TABLE engine_instance")
                time.sleep(rng.uniform(0, 0.1))
                cancelled += len(connection.execute(query).fetchall())
            time.sleep(rng.uniform(0, 0.1))
    assert cancelled > 10, "hardly anything was cancelled: the test proves nothing"
    assert "is tried again" in arena.output()


def test_a_server_that_lets_nobody_in_for_seconds_costs_no_attempt(arena: Arena) -> None:
    """All connections of the workers are cut meanwhile, except those that hold their locks."""
    query = """
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name LIKE 'reprise %' AND application_name NOT LIKE 'reprise lock%'
    """
    change = f"ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS"
    with psycopg.connect(arena.server.dsn("postgres"), autocommit=True) as connection, load(arena):
        time.sleep(0.5)
        connection.execute(f"{change} false")
        try:
            [cut] = connection.execute(query).fetchone() or (0,)
            time.sleep(LOCKED_SECONDS)
        finally:
            connection.execute(f"{change} true")
    assert cut >= 4, "hardly anything was cut: the test proves nothing"
    assert "cannot be opened yet" in arena.output()
