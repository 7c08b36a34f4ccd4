"""What control has reached in a flow, as far as the steps of an instance prove it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from studio.diagram.flow import Block, Branch, End, Fork, Hidden, Item, Loop, StepNode, ends, every
from studio.diagram.layout import START

Way = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Passed:
    """An item that made steps. `is_sure` is false if another one may have made them."""

    times: int
    is_sure: bool = True


Made = Mapping[str, Passed]


def reached(block: Block, made: Made, *, ended: str = "") -> set[str]:
    """Return the ids of items, and the keys of arms, that control has reached.

    `made` has the items that made steps. `ended` is how the handler ended: complete, errored or terminated.
    """
    found = {START}
    _walk(block, made, found, is_passed=False)
    found.update(_only_way(block, made, ended))
    return found


def _is_made(block: Block, made: Made) -> bool:
    return any(item.id in made for item in every(block))


def _is_surely_made(block: Block, made: Made) -> bool:
    return any(item.id in made and made[item.id].is_sure for item in every(block))


def _has_step(block: Block) -> bool:
    return any(isinstance(item, StepNode | Hidden) for item in every(block))


def _walk(block: Block, made: Made, found: set[str], *, is_passed: bool) -> None:
    """Add what was reached in a block that was entered. `is_passed`: control came past its end."""
    later = is_passed
    for item in reversed(block):
        if later or _is_made((item,), made):
            found.add(item.id)
            _within(item, made, found, is_passed=later)
            later = True


def _within(item: Item, made: Made, found: set[str], *, is_passed: bool) -> None:
    match item:
        case Branch(arms=arms):
            taken = [arm for arm in arms if _is_surely_made(arm.items, made)]
            if not taken and is_passed and not _is_made((item,), made):
                # Without a step in it, only the way past the others is left.
                passing = [arm for arm in arms if not _has_step(arm.items) and not ends(arm.items)]
                taken = passing if len(passing) == 1 else []
            for arm in taken:
                found.add(arm.key)
                _walk(arm.items, made, found, is_passed=is_passed and not ends(arm.items))
        case Loop(body=body, is_left_by_break=is_left_by_break) if _is_made(body, made):
            again = any(made[one.id].times > 1 for one in every(body) if one.id in made)
            if again:
                found.add(f"{item.id}/again")
            may_break = any(isinstance(one, End) and one.how == "break" for one in every(body))
            came_past = again or (is_passed and not may_break)
            _walk(body, made, found, is_passed=came_past and not ends(body))
            if is_passed and is_left_by_break:
                found.update(_only_way(body, made, "break"))
        case Fork(arms=arms):
            for arm in arms:
                _walk(arm.items, made, found, is_passed=is_passed and not ends(arm.items))


def _only_way(block: Block, made: Made, how: str) -> Way:
    """Return what control has passed after the last step if only one end of this kind can follow, with that end."""
    ways = [*_ways_out(block, made, how)] if how else []
    return ways[0] if len(ways) == 1 else ()


def _ways_out(block: Block, made: Made, how: str) -> Iterator[Way]:
    """Yield the ends that control may have arrived at after the last step, each with what it passed on the way."""
    last = max((at for at, item in enumerate(block) if _is_made((item,), made)), default=-1)
    if last >= 0:
        inner = [one for one in _arms(block[last]) if _is_made(one[1], made)]
        for key, items in inner:
            yield from ((*key, *one) for one in _ways_out(items, made, how))
        if inner and isinstance(block[last], Branch) and all(ends(items) for _, items in inner):
            return
    yield from _ways_on(block[last + 1 :], made, how)


def _ways_on(block: Block, made: Made, how: str) -> Iterator[Way]:
    """Yield the ends in what follows the last step. Control stops at what would have made another one."""
    way: Way = ()
    for item in block:
        way = (*way, item.id)
        match item:
            case End():
                if item.how == how:
                    yield way
                return
            case Branch():
                for key, items in _arms(item):
                    yield from ((*way, *key, *one) for one in _ways_out(items, made, how))
                passing = [key for key, items in _arms(item) if not _has_step(items) and not ends(items)]
                if not passing:
                    return
                way = (*way, *passing[0]) if len(passing) == 1 else way
            case StepNode() | Hidden():
                return
            case Fork() if _has_step((item,)):
                return


def _arms(item: Item) -> list[tuple[Way, Block]]:
    match item:
        case Branch(arms=arms):
            return [((arm.key,), arm.items) for arm in arms]
        case Loop(body=body):
            return [((), body)]
    return []
