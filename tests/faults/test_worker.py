"""The connection breaks before or after a statement of a worker: it comes back, and the work continues to its end.

The points are those of a run without a fault. How often a worker asks for work is chance, so a point may not come
again; every statement must have failed in both ways all the same.

REPRISE_FAULTS=all tries every point; otherwise it is every checkpoint after its commit, which is where what the worker
knows and what is true part, and a choice of the others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

import pytest

from engine.worker import shift
from engine.worker.database import worker_lock
from tests.faults import tale
from tests.faults.points import DROPS, Breaker, Point, violations
from tests.faults.proxy import Fault, Proxy
from tests.shifts import running_shift

pytestmark = pytest.mark.second_tier

ALL = os.environ.get("REPRISE_FAULTS") == "all"
WRITES = re.compile("FLUSH|CLAIM|CLAIM_QUARANTINED|REAP|TAKE_WORKER_LOCK")
OFTEN = 2  # of claims, which come again and again
AGAIN = 8  # runs for a statement that is sent only if a signal comes while a step waits
EVERY = 10  # checkpoints of which one breaks before it is written, too


@pytest.fixture(autouse=True)
def _tale(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    tale.declare()
    monkeypatch.setattr(worker_lock, "_taken_here", set())
    monkeypatch.setattr(shift, "RECONNECT_SECONDS", (0.01,))


@pytest.mark.parametrize("connection", ["lock", "claims", "journal"])
def test_work_goes_on_whichever_statement_the_connection_breaks_at(proxy: Proxy, connection: str) -> None:
    seen = play(proxy, "clean", Breaker()).seen
    known = {where: count for where, count in seen.items() if where[0].startswith(f"reprise {connection}")}
    assert known, seen
    planned = list(plan(known))
    hit = [one for number, one in enumerate(planned) if play(proxy, f"run-{number}", Breaker(*one)).is_hit]
    assert len(hit) > len(planned) * 0.7, set(planned) - set(hit)
    found = {(point[:2], fault) for point, fault in hit}
    for number, (point, fault) in enumerate(planned):
        if (point[:2], fault) not in found and _comes_again(proxy, f"again-{number}", point, fault):
            found.add((point[:2], fault))
    assert found == {(point[:2], fault) for point, fault in planned}


def _comes_again(proxy: Proxy, prefix: str, point: Point, fault: Fault) -> bool:
    """Play until the point comes: whether a worker asks for some things at all is chance in each run."""
    return any(play(proxy, f"{prefix}-{time}", Breaker(point, fault)).is_hit for time in range(AGAIN))


def plan(known: dict[tuple[str, str], int]) -> Iterator[tuple[Point, Fault]]:
    for (application, name), count in known.items():
        if name.startswith("parse "):
            continue  # changes nothing: it breaks as it does before the statement is run
        for number in range(1, count + 1):
            for fault in faults(name, number):
                yield (application, name, number), fault


def faults(name: str, number: int) -> Iterable[Fault]:
    if ALL:
        return DROPS
    if name == "FLUSH":
        return DROPS if number % EVERY == 1 else [Fault.DROP_AFTER]
    if WRITES.fullmatch(name):
        return DROPS if number <= OFTEN else []
    return [Fault.DROP_BEFORE] if number == 1 else []


def play(proxy: Proxy, prefix: str, breaker: Breaker) -> Breaker:
    proxy.decide = breaker
    instances = tale.begin(prefix)
    try:
        with running_shift():
            tale.steer(instances)
        # A shift that lost its lock has lost what it held, and no more; a connection that broke alone costs nothing.
        tale.check(instances, spends=breaker.point[0].startswith("reprise lock"))
        assert violations() == []
    except BaseException as error:
        error.add_note(f"{breaker.fault} at {breaker.point}")
        raise
    return breaker
