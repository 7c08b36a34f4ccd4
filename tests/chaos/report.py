"""A run on one screen."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from typing import Any

from tests.chaos import goals
from tests.chaos.case import Case
from tests.chaos.plan import WHOLE_MINUTES, Plan
from tests.live import PROJECT

LEFT_OUT = (
    "two versions at once",
    "clocks of workers that are off (tests/process/test_clocks.py has them)",
)
OTHERWISE = (
    "8 visitors and 8 open pages instead of 20 (2 and 2 in a minute's run), on two machines instead of three workers",
    "2 of 1,000 steps kill their process instead of 10: each costs as much as a kill of ours",
    "quarantine processes are killed instead of sweepers: every worker sweeps",
)
SHOWN = 5
LONGEST_COMPLAINT = 600


def report(case: Case, told: dict[str, Any], complaints: dict[str, list[str]]) -> str:
    return "\n".join(_lines(case, told, complaints))


def _lines(case: Case, told: dict[str, Any], complaints: dict[str, list[str]]) -> Iterator[str]:
    plan = case.plan
    yield (
        f"seed {plan.seed}  commit {_commit()}  {os.cpu_count()} cores  calibrated {case.calibrated:.0f} steps/s  "
        f"N={plan.instances} at {plan.rate:.1f}/s for {plan.load:.0f} s  lease {plan.lease:.0f} s"
    )
    yield from _scaled(case)
    yield _line("faults", " | ".join(_fault(kind, one) for kind, one in sorted(told["faults"].items())))
    if told["missed"]:
        yield _line("faults", f"without a victim, then another kind or none: {_pairs(told['missed'])}")
    yield _line("accepted", _accepted(told["accepted"]))
    yield _line("outcome", f"{_pairs(told['outcome'])}  given up by chance {len(told['crashing'])}")
    yield _line("bodies", _pairs(told["bodies"]))
    yield _line("fencing", _pairs(told["fencing"]))
    for name, value in told["wake-ups"].items():
        yield _line("wake-ups", f"{name}: {_pairs(value) if isinstance(value, dict) else value}")
    yield _line("load", f"{_pairs(told['load'])}  connections at most {told['connections']}")
    yield _line("pages", _pairs(told["pages"]))
    yield _line("sockets", _pairs(told["sockets"]))
    yield _line(
        "memory", "  ".join(f"{part} {old} → {new} KiB" for part, (old, new) in told["memory"].items())
    )
    yield _line(
        "drain", f"{_seconds(told['drain'])}; new instances after it done in {_seconds(told['tail'])}"
    )
    yield _line("invariants", _pairs(told["invariants"]))
    yield from (_line("left out", what) for what in LEFT_OUT)
    for name, found in complaints.items():
        yield _line("check", f"{name}: {f'{len(found)} WRONG' if found else 'ok'}")
        yield from (f"             - {one[:LONGEST_COMPLAINT]}" for one in found[:SHOWN])
    failed = any(complaints.values())
    yield f"RESULT {'FAIL' if failed else 'PASS'} in {case.closed - case.began:.0f} s (seed {plan.seed})"


def _scaled(case: Case) -> Iterator[str]:
    """Return how the run differs from the planned one, for the report."""
    plan = case.plan
    planned = Plan.of(plan.seed, plan.minutes).rate
    if plan.rate < planned:
        yield _line(
            "scaled", f"{plan.rate:.1f} starts a second instead of {planned}: the machine is too slow"
        )
    if not goals.are_judged(case):
        yield _line(
            "scaled",
            f"goals are not judged: a short run, or less than {goals.AT_REST:.0f} steps/s calibrated",
        )
    if plan.minutes != WHOLE_MINUTES:
        yield _line(
            "scaled", f"{plan.minutes:g} minutes, {plan.rate:.1f} starts/s, sleeps up to {plan.longest:.0f} s"
        )
    left_out = len(case.stories) - len(case.told)
    if left_out:
        yield _line(
            "scaled", f"{left_out} of {plan.instances} not started: more was due than the machine got done"
        )
    yield from (_line("scaled", what) for what in OTHERWISE)


def _fault(kind: str, one: dict[str, Any]) -> str:
    lasting = (
        f" ({' '.join(str(seconds) for seconds in one['seconds'])} s)" if max(one["seconds"]) > 0.2 else ""
    )
    took = f", took {one['hit']} bodies" if one["hit"] else ""
    return f"{kind} {one['all']}, {one['in flight']} in flight{took}{lasting}"


def _accepted(told: dict[str, int]) -> str:
    return (
        f"starts {told['accepted']}/{told['instances']} present, {told['again']} sent twice | "
        f"events {told['send']}/{told['events']}, {told['sent again']} sent twice | "
        f"pause {told['pause']} resume {told['resume']} terminate {told['terminate']} restart {told['restart']} "
        f"delete {told['delete']}, "
        f"{told['audit rows']} rows in the trail | calls that were not accepted {told['not accepted']}"
    )


def _line(name: str, text: str) -> str:
    return f"{name:<11}{text}"


def _pairs(found: dict[str, Any]) -> str:
    return "  ".join(f"{name} {value}" for name, value in found.items())


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.1f} s"


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"
