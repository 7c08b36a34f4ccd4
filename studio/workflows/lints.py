"""What the lints say of a workflow, as its page and the list of workflows show it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.declare.registry import workflows
from engine.lints import Finding, Severity, findings, findings_of_code

# A status whose colour it has, and an icon.
LOOKS = {
    Severity.ERROR: ("errored", "circle-alert"),
    Severity.WARNING: ("retrying", "triangle-alert"),
    Severity.INFO: ("queued", "info"),
}
UNSTARTED = "engine.I102"


@dataclass(frozen=True, slots=True)
class Line:
    """A finding as it is drawn."""

    finding: Finding
    look: str
    icon: str


def lines_of(name: str, *, has_run: bool) -> list[Line]:
    """Return what there is to say, the worst first. Whether anything starts it, its instances tell better."""
    found = findings(workflows[name]) if name in workflows else []
    shown = [one for one in found if not (has_run and one.id == UNSTARTED)]
    return [Line(one, *LOOKS[one.severity]) for one in sorted(shown, key=lambda one: one.severity.rank)]


@dataclass(frozen=True, slots=True)
class Tally:
    """How many errors and warnings there are; `look` is the status whose colour the worst of them has."""

    count: int = 0
    look: str = ""


def tally(name: str) -> Tally:
    """Count the errors and warnings of a workflow."""
    found = findings_of_code(workflows[name]) if name in workflows else []
    worst = min((one.severity for one in found), key=lambda one: one.rank, default=None)
    return Tally(len(found), "" if worst is None else LOOKS[worst][0])
