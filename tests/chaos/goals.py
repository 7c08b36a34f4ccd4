"""How soon work goes on, where the machine has nothing else to do: a loaded one is held to `judgement` only."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.case import Case
from tests.chaos.figures import wake_ups

AT_REST = 2500.0  # calibrated steps a second, on two cores
# Seconds; the figures by the names that the report gives them.
MOST = {
    ("kill to next body anywhere", "p95"): 2.0,
    ("kill to next attempt at what it took", "p95"): 2.0,
    ("lateness of sleeps", "p99"): 5.0,
}
DATABASE_UP_TO_BODY = 3.0


def are_judged(case: Case) -> bool:
    """Tell whether the run says anything about speed: it is a whole one, on a machine at rest."""
    return not case.plan.is_short and case.calibrated >= AT_REST


def goals(case: Case) -> Iterator[str]:
    """What a fault has stopped goes on soon."""
    if not are_judged(case):
        return
    measured = wake_ups(case)
    for (name, which), most in MOST.items():
        if measured[name][which] > most:
            yield f"{name}: {measured[name][which]:.2f} s ({which}), the goal is {most:g} s"
    for seconds in measured["database up to first body"]:
        if seconds > DATABASE_UP_TO_BODY:
            yield f"database up to first body: {seconds:.2f} s, the goal is {DATABASE_UP_TO_BODY:g} s"
