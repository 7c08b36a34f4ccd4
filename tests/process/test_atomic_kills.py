"""SIGKILL of a worker before and after every statement of an atomic body or rollback: what it writes is there once."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.models import Attempt, Instance
from studio.embedded import socket_dir
from tests.faults.points import DROPS
from tests.faults.proxy import Fault, Proxy
from tests.faults.wire import Request
from tests.process.arena import Arena, attempts, kill, wait_for, wait_until
from tests.process.program.workflows import Op, fail, program, refund, sell, work
from tests.shop import open_shop, sales

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

BODIES = "bodies"
STATEMENTS = ["BEGIN", "ENTER", "INSERT", "CHECKPOINT", "COMMIT", "FLUSH"]


def name_of(request: Request) -> str:
    """Name a statement of a body's transaction, or the flush after it; empty for others."""
    words = request.statement.split()
    if request.application != BODIES:
        data = str(request.data) if request.is_run and request.name == "FLUSH" else ""
        if '"rollback":"complete"' in data:
            return "FLUSH OF ROLLBACK"
        return "FLUSH" if '"status":"complete"' in data else ""
    if "set_config('client_connection_check_interval'" in request.statement:
        return "ENTER"
    if words[:3] == ["WITH", "ours", "AS"]:
        return "CHECKPOINT"
    return words[0] if words and words[0] in ("BEGIN", "INSERT", "COMMIT") else ""


@dataclass
class Killer:
    """Kills the worker at the first statement of this name: before the server sees it, or before it hears of it."""

    statement: str = ""
    fault: Fault = Fault.NONE
    pid: int = 0
    seen: list[str] = field(default_factory=list)

    def __call__(self, request: Request) -> Fault:
        name = name_of(request)
        self.seen += [name] if name else []
        if not name or name != self.statement or not self.pid:
            return Fault.NONE
        os.kill(self.pid, signal.SIGKILL)
        self.pid = 0
        return self.fault


@pytest.fixture
def proxy(arena: Arena) -> Iterator[Proxy]:
    with tempfile.TemporaryDirectory(prefix="proxy-") as directory, open_shop():
        proxy = Proxy(socket_dir(arena.home), Path(directory)).start()
        try:
            yield proxy
        finally:
            arena.end_all()
            proxy.stop()


def start_worker(arena: Arena, proxy: Proxy, name: str) -> int:
    return arena.start("proxied_worker", directory=str(proxy.directory), application=BODIES, name=name)


def play(
    arena: Arena,
    proxy: Proxy,
    statement: str = "",
    fault: Fault = Fault.NONE,
    *,
    ops: tuple[Op, ...] = (sell("sell"), work("after")),
) -> tuple[Instance, Killer]:
    """Let one worker run an instance and be killed there, and another one continue."""
    proxy.decide = killer = Killer(statement, fault)
    first = killer.pid = start_worker(arena, proxy, "first")
    instance = program.start(list(ops))
    if statement:
        wait_until(lambda: not killer.pid, what="the statement")
        arena.worker("second")
    wait_for([instance], "complete", "errored", seconds=30)
    kill(first)
    return instance, killer


def test_an_undisturbed_worker_makes_these_statements(arena: Arena, proxy: Proxy) -> None:
    instance, killer = play(arena, proxy)
    assert killer.seen[: len(STATEMENTS)] == STATEMENTS
    assert sales(instance) == [(1, "sell")]


@pytest.mark.parametrize("fault", DROPS, ids=["before", "after"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_killed_at_any_statement_the_body_has_written_once(
    arena: Arena, proxy: Proxy, statement: str, fault: Fault
) -> None:
    instance, _ = play(arena, proxy, statement, fault)
    is_committed = (statement, fault) == ("COMMIT", Fault.DROP_AFTER) or statement == "FLUSH"
    expected = [(1, "complete")] if is_committed else [(1, "lost"), (2, "complete")]
    assert attempts(instance, "sell") == expected
    assert sales(instance) == [(expected[-1][0], "sell")]
    # The flush that tells of the end of one also begins the next, which is lost then.
    of_the_next = 2 if (statement, fault) == ("FLUSH", Fault.DROP_AFTER) else 1
    assert instance.refresh().output == [expected[-1][0], of_the_next]
    begun = [line.attempt for line in arena.ledger.lines(what="start", step="sell")]
    assert begun == ([2] if statement in ("BEGIN", "ENTER") else [number for number, _ in expected])


REFUND = (refund("sell"), fail())
UNDOING = ["BEGIN", "ENTER", "INSERT", "CHECKPOINT", "COMMIT", "FLUSH OF ROLLBACK"]


def undoing(instance: Instance) -> list[tuple[int, str]]:
    rows = Attempt.objects.filter(instance=instance, phase="rollback").order_by("number")
    return list(rows.values_list("number", "status"))


def test_an_undisturbed_rollback_makes_these_statements(arena: Arena, proxy: Proxy) -> None:
    instance, killer = play(arena, proxy, ops=REFUND)
    assert [name for name in killer.seen if name in UNDOING] == UNDOING
    assert sales(instance) == [(1, "undone sell")]


@pytest.mark.parametrize("fault", DROPS, ids=["before", "after"])
@pytest.mark.parametrize("statement", UNDOING)
def test_killed_at_any_statement_the_rollback_has_written_once(
    arena: Arena, proxy: Proxy, statement: str, fault: Fault
) -> None:
    instance, _ = play(arena, proxy, statement, fault, ops=REFUND)
    is_committed = (statement, fault) == ("COMMIT", Fault.DROP_AFTER) or statement == "FLUSH OF ROLLBACK"
    expected = [(1, "complete")] if is_committed else [(1, "lost"), (2, "complete")]
    assert undoing(instance) == expected
    assert sales(instance) == [(expected[-1][0], "undone sell")]
    assert (instance.refresh().status, instance.rollback) == ("errored", "complete")
