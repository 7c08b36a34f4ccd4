"""The steps of a handler that are next, as far as its source leaves no doubt.

What follows a condition, a loop, or code that builds its steps is not known before it runs, so nothing is said of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from engine.models import Instance
from engine.values.identity import TOP
from studio.diagram.flow import Block, Branch, End, Fork, Hidden, Item, Loop, StepNode, ends, every
from studio.diagram.matching import Family
from studio.instance.code_version import version_of
from studio.instance.steps.line import Line
from studio.workflows.code import handler_of, source_now

MOST = 12  # that are shown

Found = tuple[list[StepNode], bool]  # and whether control surely comes past the end


@dataclass(frozen=True, slots=True)
class Ahead:
    """Steps that have not started. `more` is how many others are known."""

    steps: Sequence[StepNode] = ()
    more: int = 0


def steps_ahead(instance: Instance, lines: Iterable[Line]) -> Ahead:
    """Return what follows these, which are all steps of an instance that has not ended."""
    version = version_of(instance)
    source = source_now(instance.workflow)
    if source is None or version.is_changed or instance.rollback:
        return Ahead()
    handler = handler_of(source)
    made = _made([line for line in lines if line.step.parent == TOP], handler.families)
    if handler.flow.problem or made is None:
        return Ahead()
    found, _ = _after(handler.flow.block, made)
    return Ahead(found[:MOST], max(len(found) - MOST, 0))


def _made(lines: Sequence[Line], of: Sequence[Family]) -> set[str] | None:
    """Return the ids of the items that made these steps, or None if one may be of several, of none, or has failed."""
    made: set[str] = set()
    for line in lines:
        step = line.step
        family = next((one for one in of if one.kind == step.kind and _has_name(one, step.name)), None)
        makers = [one.node.id for one in family.makers if one.may_have_made(step.count)] if family else []
        if len(makers) != 1 or step.status in ("errored", "cancelled"):
            return None
        made.update(makers)
    return made


def _has_name(family: Family, name: str) -> bool:
    pattern = family.makers[0].node.pattern
    return re.fullmatch(pattern, name, re.DOTALL) is not None if pattern else family.name == name


def _after(block: Block, made: Set[str]) -> Found:
    """Return the steps of a block that follow those which were made."""
    last = max((at for at, item in enumerate(block) if _has_any((item,), made)), default=-1)
    found, goes_on = _within(block[last], made) if last >= 0 else ([], True)
    for item in block[last + 1 :]:
        if not goes_on:
            break
        more, goes_on = _all_of(item)
        found += more
    return found, goes_on


def _has_any(block: Block, made: Set[str]) -> bool:
    return any(item.id in made for item in every(block))


def _within(item: Item, made: Set[str]) -> Found:
    """Return what is left of the item that made the last step."""
    match item:
        case StepNode():
            return [], True
        case Branch(arms=arms):
            taken = [arm.items for arm in arms if _has_any(arm.items, made)]
            return _after(taken[0], made) if len(taken) == 1 else ([], False)
        case Fork(arms=arms):
            return _joined([_after(arm.items, made) for arm in arms])
    return [], False


def _all_of(item: Item) -> Found:
    """Return the steps of an item of which nothing was made."""
    match item:
        case StepNode(is_many=is_many):
            return [] if is_many else [item], True
        case Fork(arms=arms):
            return _joined([_after(arm.items, set()) for arm in arms])
        case Branch(arms=arms):
            return [], not any(ends(arm.items) or _has_steps(arm.items) for arm in arms)
        case Loop(body=body, is_endless=is_endless):
            return [], not is_endless and not _has_steps(body)
    return [], False


def _has_steps(block: Block) -> bool:
    return any(isinstance(item, StepNode | Hidden | End) for item in every(block))


def _joined(found: Sequence[Found]) -> Found:
    return [step for steps, _ in found for step in steps], all(goes_on for _, goes_on in found)
