"""`max_running` holds over several workers, whoever of them is killed, and the places of a dead one are free again."""

from __future__ import annotations

import time

import pytest

from tests.process.arena import Arena, kill, wait_for, wait_until
from tests.process.ledger import Line
from tests.process.program.workflows import narrow, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

LONG = 60.0
LIMIT = 3


def test_never_more_run_than_the_limit_while_their_workers_are_killed(arena: Arena) -> None:
    assert narrow.max_running == LIMIT
    first = arena.worker("first")
    stuck = narrow.start_many([{"params": [work("long", LONG, 0.02), work("after")]}] * LIMIT).created
    wait_until(lambda: len(arena.ledger.lines(what="start", step="long")) == LIMIT)
    second = arena.worker("second")
    others = narrow.start_many([{"params": [work("short", 0.02), work("after", 0.02)]}] * 20).created
    killed: dict[int, float] = {}
    for pid, name in ((first, "third"), (second, "fourth")):
        before = len(arena.ledger.lines(what="end", step="after"))
        killed[pid] = time.monotonic()
        kill(pid)
        arena.worker(name)
        wait_until(lambda before=before: len(arena.ledger.lines(what="end", step="after")) > before + 3)
    wait_for([*stuck, *others])
    assert most_at_once(arena.ledger.lines(), killed) == LIMIT


def most_at_once(lines: list[Line], killed: dict[int, float]) -> int:
    """Count the instances whose bodies ran at the same time; those of a killed process ended with it."""
    begun = [line for line in lines if line.what == "start"]
    ends = {(line.instance, line.step, line.attempt): line.at for line in lines if line.what == "end"}
    moves = [(line.at, 1) for line in begun]
    for line in begun:
        end = ends.get((line.instance, line.step, line.attempt))
        moves.append((killed[line.pid] if end is None else end, -1))
    running = most = 0
    for _, move in sorted(moves):
        running += move
        most = max(most, running)
    return most
