"""Findings of the lints, as the pages of workflows show them."""

from __future__ import annotations

from dataclasses import dataclass

from engine.declare.registry import workflows
from engine.lints import Finding, Severity, findings, findings_of_code

# The status that gives its color, and its icon.
LOOKS = {
    Severity.ERROR: ("errored", "circle-alert"),
    Severity.WARNING: ("retrying", "triangle-alert"),
    Severity.INFO: ("queued", "info"),
}
UNSTARTED = "engine.I102"


@dataclass(frozen=True, slots=True)
class Line:
    """A finding, ready to render."""

    finding: Finding
    look: str
    icon: str


def lines_of(name: str, *, has_run: bool) -> list[Line]:
    """Return the findings, worst first. Instances prove that something starts the workflow, whatever the lint says."""
    found = findings(workflows[name]) if name in workflows else []
    shown = [one for one in found if not (has_run and one.id == UNSTARTED)]
    return [Line(one, *LOOKS[one.severity]) for one in sorted(shown, key=lambda one: one.severity.rank)]


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of errors and warnings. `look` is the status that gives the color of the worst."""

    count: int = 0
    look: str = ""


def tally(name: str) -> Tally:
    """Count the errors and warnings of a workflow."""
    found = findings_of_code(workflows[name]) if name in workflows else []
    worst = min((one.severity for one in found), key=lambda one: one.rank, default=None)
    return Tally(len(found), "" if worst is None else LOOKS[worst][0])
