"""Paint the drawing of a handler with what an instance has done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from engine.models import Instance
from engine.status.steps import count_inside
from engine.values.durations import format_duration
from studio.diagram.flow import Flow
from studio.diagram.matching import Family
from studio.diagram.paint import Paint, Painting
from studio.diagram.reaching import Passed, reached
from studio.display.status import PARTS, display_status_of_step
from studio.instance.code.made import Group, Made, Shown, made_by

WORDS = {"paused": "needs a decision", "approval": "needs an answer", "timed_out": "timed out"}
INSIDE = {"map": "item", "parallel": "child"}
Items = Mapping[int, tuple[int, int]]  # how many steps are inside a step, and how many of those are complete


@dataclass(frozen=True, slots=True)
class Part:
    """What one item of the drawing has made. `is_sure` is false if another item may have made it."""

    group: Group
    status: str
    paint: Paint
    is_sure: bool
    address: str  # of the step that is shown
    find: str  # of all its steps, if there are several with this name

    @property
    def step(self) -> Shown:
        return self.group.step


@dataclass(frozen=True, slots=True)
class Painted:
    """A drawing with its parts by the id of the item. `loose` are steps that no item has made."""

    painting: Painting
    parts: Mapping[str, Part]
    loose: Group | None
    loose_address: str = ""


def painted(instance: Instance, flow: Flow, of: Sequence[Family], place: str) -> Painted:
    """Read what an instance has made of a flow. `place` starts the query strings of links."""
    made = made_by(instance, of)
    groups = _by_item(made, of)
    parents = [one.step.seq for one, _, _ in groups.values() if one.step.kind in INSIDE]
    items = _items(instance, parents)
    parts = {
        item: _part(group, items, place, family, is_sure=is_sure)
        for item, (group, family, is_sure) in groups.items()
    }
    passed = {item: Passed(part.group.times, part.is_sure) for item, part in parts.items()}
    ended = instance.status if instance.is_finished else ""
    taken = reached(flow.block, passed, ended=ended)
    painting = Painting({item: part.paint for item, part in parts.items()}, taken)
    loose = made.loose
    return Painted(painting, parts, loose, _address(loose.step, place) if loose else "")


def _by_item(made: Made, of: Sequence[Family]) -> dict[str, tuple[Group, Family, bool]]:
    """Return for each item its steps, all in one group, and whether only it may have made them."""
    found: dict[str, tuple[Group, Family, bool]] = {}
    for (at, nth), group in made.groups.items():
        makers = [one for one in of[at].makers if one.may_have_made(nth)]
        for one in makers:
            before = found.get(one.node.id)
            is_sure = len(makers) == 1 and (before is None or before[2])
            both = group if before is None else _joined(before[0], group)
            found[one.node.id] = both, of[at], is_sure
    return found


def _joined(one: Group, other: Group) -> Group:
    shown = max(one.step, other.step, key=lambda step: step.weight)
    return Group(one.times + other.times, one.failed + other.failed, shown)


def _items(instance: Instance, parents: Sequence[int]) -> Items:
    found: dict[int, tuple[int, int]] = {}
    for inside in count_inside(instance, parents):
        total, done = found.get(inside.parent, (0, 0))
        is_done = inside.status == "complete"
        found[inside.parent] = total + inside.count, done + (inside.count if is_done else 0)
    return found


def _part(group: Group, items: Items, place: str, family: Family, *, is_sure: bool) -> Part:
    step = group.step
    status = "paused" if step.is_stuck else display_status_of_step(step.status, step.kind)
    icon = PARTS[status].icon if status in PARTS else "circle-dashed"
    said = Paint(status, icon, _fact(group, status, items.get(step.seq)))
    find = f"?{place}{urlencode({'find': family.name})}" if group.times > 1 and not family.like else ""
    return Part(group, status, said, is_sure, _address(step, place), find)


def _address(step: Shown, place: str) -> str:
    return f"?{place}{urlencode({'step': f'{step.name}-{step.count}'})}"


def _fact(group: Group, status: str, inside: tuple[int, int] | None) -> str:
    """Return the shortest fact: how often, and how it went."""
    said = [f"{group.times:,} times"] if group.times > 1 else []
    if inside is not None and inside[0]:
        said.append(_inside(group.step.kind, *inside))
    said.append(_went(group.step, status))
    failed = group.failed - (status == "errored")
    if failed:
        said.append(f"{failed:,} failed before" if group.times > 1 else "failed before")
    return " · ".join(part for part in said if part)


def _inside(kind: str, total: int, done: int) -> str:
    many = {"item": "items", "child": "children"}
    word = INSIDE[kind] if total == 1 else many[INSIDE[kind]]
    return f"{total:,} {word}" if done == total else f"{done:,} of {total:,} {word}"


def _went(step: Shown, status: str) -> str:
    match status:
        case "complete":
            took = step.took
            return "" if took is None else format_duration(took)
        case "retrying":
            of = f" of {step.max_attempts}" if step.max_attempts else ""
            return f"{step.attempts}{of} failed"
        case "errored":
            return f"failed {step.attempts} times" if step.attempts > 1 else "failed"
        case "running":
            return f"runs, attempt {step.attempts}" if step.attempts > 1 else "running"
    return WORDS.get(status, status.replace("_", " "))
