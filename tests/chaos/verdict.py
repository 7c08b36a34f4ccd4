"""All checks of a run, by the name under which the report prints them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.chaos import compare, judgement
from tests.chaos.case import Case
from tests.chaos.goals import goals

SHOWN = 5

CHECKS: dict[str, Callable[[Case], Iterator[str]]] = {
    "everything was tried": judgement.everything_was_tried,
    "accepted starts": compare.starts,
    "accepted events": compare.events,
    "accepted actions": compare.actions,
    "outcomes": compare.outcomes,
    "bodies": compare.bodies,
    "completed once": compare.once,
    "idempotency keys": compare.keys,
    "failures": compare.failures,
    "losses": compare.losses,
    "rollbacks": compare.rollbacks,
    "atomic writes": compare.sales,
    "sleeps": compare.sleeps,
    "pauses": compare.pauses,
    "invariants": judgement.invariants,
    "retention": judgement.retention,
    "schedules": judgement.schedules,
    "all ends": judgement.all_ends,
    "no strays": judgement.nothing_survives,
    "fencing": judgement.zombies_are_fenced,
    "recovery": judgement.recovery,
    "goals": goals,
    "pages": judgement.pages,
    "sockets": judgement.sockets,
    "deadlocks": judgement.deadlocks,
    "memory": judgement.memory,
    "logs": judgement.alarms,
}


def judge(case: Case) -> dict[str, list[str]]:
    """Return what is wrong, by check; every check is in it."""
    return {name: list(check(case)) for name, check in CHECKS.items()}


def is_passed(complaints: dict[str, list[str]]) -> bool:
    return not any(complaints.values())
