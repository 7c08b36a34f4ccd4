"""Fault points: where a connection can break, found by watching a run in which none does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from django.db import connections

from engine import invariants
from tests.faults.proxy import Fault
from tests.faults.wire import Request

DROPS = (Fault.DROP_BEFORE, Fault.DROP_AFTER)

Point = tuple[str, str, int]  # an application, a statement, and the how many-th of it


@dataclass
class Watcher:
    """Counts the requests of one application, and has one of them fail. What a proxy asks for its decisions."""

    application: str
    number: int = 0
    fault: Fault = Fault.NONE
    seen: list[str] = field(default_factory=list)

    def __call__(self, request: Request) -> Fault:
        if request.application != self.application:
            return Fault.NONE
        self.seen.append(request.name)
        return self.fault if len(self.seen) == self.number else Fault.NONE


@dataclass
class Breaker:
    """Has one statement of one connection fail: the `number`-th of its name."""

    point: Point = ("", "", 0)
    fault: Fault = Fault.NONE
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    is_hit: bool = False

    def __call__(self, request: Request) -> Fault:
        where = (request.application, request.name)
        self.seen[where] += 1
        if self.is_hit or (*where, self.seen[where]) != self.point:
            return Fault.NONE
        self.is_hit = True
        return self.fault


def in_a_session_of_its_own(act: Callable[[], object]) -> object:
    """Call it on a new connection; return its answer, or the exception that it raised."""

    def run() -> object:
        try:
            return act()
        except Exception as error:  # noqa: BLE001 - the answer, too
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result(30)


def violations(*, but: Sequence[str] = ()) -> list[invariants.Finding]:
    """Ask all invariants of the engine; return those that do not hold."""
    with connections["default"].cursor() as cursor:
        found = [invariants.look(cursor, one) for one in invariants.INVARIANTS if one.id not in but]
    return [finding for finding in found if finding.count]
