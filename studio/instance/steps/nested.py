"""Steps inside steps: read level by level, and folded into counts if there are many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.models import Instance
from engine.status.steps import count_inside
from studio.display.status import display_status_of_step

GROUPS = ("map", "parallel")  # always folded
INLINE = 20  # up to this many inner steps are not folded
MOST = 300  # inner steps on a page
DEEPEST = 4  # levels
PAGE = 50  # steps inside one
LEFT = "not_awaited"
NOTHING: Mapping[int, int] = {}
LEAST = 2.0  # percent of a bar that a status takes at least


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the progress bar, in percent."""

    status: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class NestedSteps:
    """Counts of the steps inside a step. `total` is how many there will be, if known."""

    total: int
    counts: Mapping[str, int]  # by shown status, in display order
    attempts: int

    @property
    def done(self) -> int:
        return self.counts.get("complete", 0)

    @property
    def begun(self) -> int:
        return sum(self.counts.values())

    @property
    def pages(self) -> int:
        return max(-(-self.begun // PAGE), 1)

    @property
    def others(self) -> list[tuple[str, int]]:
        """The counts besides the completed ones."""
        return [(status, count) for status, count in self.counts.items() if status != "complete"]

    @property
    def has_left(self) -> bool:
        """Whether the outcome of some is unknown: a failed parallel no longer awaits them."""
        return LEFT in self.counts

    @property
    def parts(self) -> list[Part]:
        widths = {status: max(100 * count / self.total, LEAST) for status, count in self.counts.items()}
        # Rare statuses get a minimum width, taken from the widest one.
        excess = sum(widths.values()) - 100 * sum(self.counts.values()) / max(self.total, 1)
        parts, x = [], 0.0
        for status, width in widths.items():
            own = width - excess if width == max(widths.values()) else width
            parts.append(Part(status, round(x, 2), round(own, 2)))
            x += own
        return parts

    @property
    def state(self) -> tuple[object, ...]:
        return self.total, tuple(self.counts.items()), self.attempts


def within(
    instance: Instance, steps: Sequence[Any], rows: Any, opened: Mapping[int, int] = NOTHING
) -> tuple[list[Any], dict[int, NestedSteps]]:
    """Read the steps inside these: the steps to show, and counts of the folded ones by parent.

    `rows` is the query for steps of the instance. Of each folded step in `opened`, one page is shown, too. Runs two
    queries for each level, and one for each opened step.
    """
    found, nested = list[Any](), dict[int, NestedSteps]()
    parents = list(steps)
    for level in range(DEEPEST):
        counted = count(instance, parents)
        if not counted:
            break
        folded = {
            parent.seq
            for parent in parents
            if parent.kind in GROUPS or (parent.seq in counted and counted[parent.seq].total > INLINE)
        }
        shown = [seq for seq in counted if seq not in folded]
        is_too_much = len(found) + sum(counted[seq].total for seq in shown) > MOST
        if is_too_much or level == DEEPEST - 1:
            shown = []
        nested |= {seq: one for seq, one in counted.items() if seq not in shown}
        parents = list(rows.filter(parent__in=shown).order_by("seq")) if shown else []
        for seq in opened:
            if seq in nested and seq in counted:
                parents += page_of(rows, seq, opened[seq], nested[seq])
        found += parents
        if not parents:
            break
    return found, nested


def page_of(rows: Any, seq: int, page: int, inside: NestedSteps) -> list[Any]:
    """Read a page of the steps inside one, in the order of their start: those that change stay where they are."""
    first = (min(page, inside.pages) - 1) * PAGE
    return list(rows.filter(parent=seq).order_by("seq")[first : first + PAGE])


def count(instance: Instance, parents: Iterable[Any]) -> dict[int, NestedSteps]:
    """Count the steps inside each of these. Groups are included even before any of their steps started."""
    known = {parent.seq: parent for parent in parents}
    counts: dict[int, dict[str, int]] = {seq: {} for seq, one in known.items() if one.kind in GROUPS}
    attempts: dict[int, int] = {}
    for inside in count_inside(instance, known):
        seq, is_left = inside.parent, inside.status == "cancelled" and leaves(known[inside.parent])
        shown = LEFT if is_left else display_status_of_step(inside.status, inside.kind)
        of_parent = counts.setdefault(seq, {})
        of_parent[shown] = of_parent.get(shown, 0) + inside.count
        attempts[seq] = attempts.get(seq, 0) + inside.attempts
    return {seq: _nested(known[seq], found, attempts.get(seq, 0)) for seq, found in counts.items()}


def leaves(parent: Any) -> bool:
    """Return whether a step is a parallel that failed and left its other branches running."""
    options = parent.options if isinstance(parent.options, dict) else {}
    is_over = parent.kind == "parallel" and parent.status == "errored"
    return is_over and options.get("on_failure") == "leave"


_ORDER = ("complete", "errored", "cancelled", LEFT, "running", "retrying")


def _nested(parent: Any, counts: Mapping[str, int], attempts: int) -> NestedSteps:
    options = parent.options if isinstance(parent.options, dict) else {}
    begun, planned = sum(counts.values()), options.get("items", options.get("branches"))
    ordered = sorted(counts.items(), key=lambda one: (*_ORDER, one[0]).index(one[0]))
    total = max(begun, planned) if isinstance(planned, int) else begun
    return NestedSteps(total, dict(ordered), attempts)
