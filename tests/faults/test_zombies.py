"""A worker stops before one of its statements, others take over meanwhile, and then the statement arrives.

At each point, in two ways: all of the worker stands still until its leases have lapsed and another worker has done
its work; or the statement alone is late, and reaches the server when its sender has long taken a new worker id.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from engine.models import Instance
from engine.worker import claims, shift
from engine.worker.database import leases, worker_lock
from tests.faults import tale
from tests.faults.points import violations
from tests.faults.proxy import Fault, Proxy
from tests.faults.snapshot import snapshot
from tests.faults.wire import Request
from tests.shifts import running_shift, wait_for, wait_until

pytestmark = pytest.mark.second_tier

ZOMBIE = "zombie"
WRITES = ("FLUSH", "CLAIM", "CLAIM_QUARANTINED", "REAP")
CLAIMS = 2  # of each: later ones find nothing new
EVERY = 6  # checkpoints of which one is held

Point = tuple[str, int]


class Holder:
    """Holds the zombie's `number`-th statement of a name while it is armed, and says that it has."""

    def __init__(self, point: Point = ("", 0)) -> None:
        self.point = point
        self.is_armed = True
        self.seen: Counter[str] = Counter()
        self.holds = threading.Event()

    def __call__(self, request: Request) -> Fault:
        if not request.application.endswith(ZOMBIE) or request.name not in WRITES:
            return Fault.NONE
        self.seen[request.name] += 1
        if not self.is_armed or (request.name, self.seen[request.name]) != self.point:
            return Fault.NONE
        self.is_armed = False
        self.holds.set()
        return Fault.HOLD


@pytest.fixture(autouse=True)
def _tale(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    tale.declare()
    monkeypatch.setattr(worker_lock, "_taken_here", set())
    monkeypatch.setattr(shift, "RECONNECT_SECONDS", (0.01,))
    monkeypatch.setattr(claims, "SWEEP_SECONDS", 0.5)
    # Its heart has a connection that is not held: leases that have lapsed are taken before it beats.
    monkeypatch.setattr(leases, "SILENT_PARTS", 1e9)
    monkeypatch.setattr(leases, "FREE_PARTS", 1e9)
    monkeypatch.setattr(leases, "MIN_FREE_SECONDS", 0.0)


def test_a_worker_that_stood_still_at_any_statement_changes_nothing_afterwards(proxy: Proxy) -> None:
    with each_point(proxy) as points:
        for name, holder in points:
            instances = tale.begin(name)
            with running_shift(name=ZOMBIE):
                steer_until_held(proxy, instances, holder)
                proxy.hold(ZOMBIE)
                let_leases_lapse()
                with running_shift(name="other"):
                    tale.steer(instances)
                before = snapshot(name)
                proxy.release()
                late = tale.begin_one(f"late-{name}")  # it works on, usefully, after a sweep at the latest
                assert wait_for(late).output == tale.OUTPUT
            assert snapshot(name) == before
            tale.check(instances, spends=1)


def test_a_statement_that_arrives_when_its_sender_has_a_new_worker_id_changes_nothing(proxy: Proxy) -> None:
    with each_point(proxy) as points:
        for name, holder in points:
            instances = tale.begin(name)
            with running_shift(name=ZOMBIE):
                steer_until_held(proxy, instances, holder)
                proxy.cut(f"lock {ZOMBIE}")
                tale.steer(instances)
                before = snapshot(name)
            proxy.release()
            wait_until(lambda: not any(ZOMBIE in one for one in proxy.sessions()), what="the late statement")
            assert snapshot(name) == before
            tale.check(instances, spends=1)


@contextmanager
def each_point(proxy: Proxy) -> Iterator[Iterator[tuple[str, Holder]]]:
    """Give a name and a holder for each point of an undisturbed run; nothing may be wrong in the end."""
    proxy.decide = clean = Holder()
    instances = tale.begin("clean")
    with running_shift(name=ZOMBIE):
        tale.steer(instances)
    held = []

    def points() -> Iterator[tuple[str, Holder]]:
        for number, point in enumerate(chosen(clean.seen)):
            proxy.decide = holder = Holder(point)
            yield f"run-{number}-{point[0]}-{point[1]}", holder
            held.append(holder)
            assert violations() == [], point

    yield points()
    reached = [holder.point for holder in held if holder.holds.is_set()]
    assert {name for name, _ in reached} == set(WRITES)
    assert len(reached) > len(held) * 0.7, reached


def chosen(seen: Counter[str]) -> Iterator[Point]:
    for name, count in seen.items():
        if name == "FLUSH":
            yield from ((name, number) for number in range(1, count + 1, EVERY))
        else:
            yield from ((name, number) for number in range(1, min(count, CLAIMS) + 1))


def steer_until_held(proxy: Proxy, instances: list[Instance], holder: Holder) -> None:
    """Stop at the point; or at the end, if chance does not bring it this time."""
    tale.steer(instances, until=holder.holds.is_set)
    holder.is_armed = (
        False  # what comes to the point from here on would be held for good: nothing releases it
    )


def let_leases_lapse() -> None:
    """Also those that a statement takes which was on its way to the server when its sender was held."""
    wait_until(lambda: not _is_asked_by_zombie(), what="the end of statements under way")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE engine_instance SET wake_at = clock_timestamp() WHERE owner IS NOT NULL")


def _is_asked_by_zombie() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name LIKE %s AND state = 'active')",
            [f"%{ZOMBIE}%"],
        )
        return bool(cursor.fetchone()[0])
