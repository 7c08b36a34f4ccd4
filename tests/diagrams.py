"""What engine/README.md shows of the code's own tables: `python -m tests.diagrams` writes it again.

A test compares the page with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from engine.invariants import INVARIANTS, UNCHECKABLE
from engine.values import states

PAGE = Path(__file__).parents[1] / "engine" / "README.md"
# What stands between two such lines is made.
_MADE = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def diagram(
    beginnings: Mapping[str, str], changes: Mapping[tuple[str, str], str], finals: Iterable[str]
) -> str:
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    [*] --> {status}: {why}" for status, why in beginnings.items()]
    lines += [f"    {before} --> {after}: {why}" for (before, after), why in changes.items()]
    lines += [f"    {status} --> [*]" for status in sorted(finals)]
    return "\n".join([*lines, "```"])


def instances() -> str:
    """Draw the statuses of instances, without the restarts: these lead from everywhere to `queued`."""
    kept = {pair: _without_restart(why) for pair, why in states.CHANGES.items()}
    return diagram(states.BEGINNINGS, {pair: why for pair, why in kept.items() if why}, states.FINAL)


def _without_restart(why: str) -> str:
    return ", ".join(one for one in why.split(", ") if one != "restart")


def actions() -> str:
    """List where each action has an effect."""
    head = "| | " + " | ".join(f"`{status}`" for status in states.InstanceStatus) + " |"
    rule = "| --- |" + " --- |" * len(states.InstanceStatus)
    rows = [
        f"| `{action}` | "
        + " | ".join("yes" if states.allows(action, status) else "" for status in states.InstanceStatus)
        + " |"
        for action in states.Action
    ]
    return "\n".join([head, rule, *rows])


def invariants() -> str:
    """List what `manage.py verify` checks in the tables, and what they cannot show."""
    lines = ["| id | name | what must hold |", "| --- | --- | --- |"]
    lines += [f"| {one.id} | `{one.name}` | {one.sentence} |" for one in INVARIANTS]
    lines += [f"| {key} | | not in the tables: {what} |" for key, what in UNCHECKABLE.items()]
    return "\n".join(lines)


FINAL_ATTEMPTS = frozenset(states.AttemptStatus) - {states.AttemptStatus.RUNNING}

SECTIONS: Mapping[str, Callable[[], str]] = {
    "instances": instances,
    "steps": lambda: diagram(states.STEP_BEGINNINGS, states.STEP_CHANGES, states.FINAL_STEPS),
    "attempts": lambda: diagram(states.ATTEMPT_BEGINNINGS, states.ATTEMPT_CHANGES, FINAL_ATTEMPTS),
    "actions": actions,
    "invariants": invariants,
}


def made(page: str) -> str:
    """Return the page with everything that is made as the code says it now."""
    return _MADE.sub(lambda found: f"{found[1]}{SECTIONS[found[2]]()}\n{found[3]}", page)


def names(page: str) -> list[str]:
    """List the generated parts of the page."""
    return [found[2] for found in _MADE.finditer(page)]


if __name__ == "__main__":
    PAGE.write_text(made(PAGE.read_text()))
