"""What a handler does, in the order of its source: steps, branches, loops, forks and ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

FALL_OUT = "end"  # the id of the end of a handler whose last line is not a return


@dataclass(frozen=True, slots=True)
class StepNode:
    """A call that makes a step. `pattern` is a regular expression of its names if the source computes them."""

    id: str
    line: int
    last_line: int
    kind: str
    name: str
    pattern: str = ""
    is_many: bool = False  # one for each of several items, side by side
    within: str = ""  # the function of the module that makes it, if that is not the handler


@dataclass(frozen=True, slots=True)
class Hidden:
    """A call that makes steps which the source of the handler does not show."""

    id: str
    line: int
    last_line: int
    name: str


@dataclass(frozen=True, slots=True)
class End:
    """A way out. `how`: complete, errored or terminated end the instance, break and next only a turn of a loop."""

    id: str
    line: int
    last_line: int
    how: str
    name: str


@dataclass(frozen=True, slots=True)
class Arm:
    """One way out of a branch, or one of the parts of a fork."""

    key: str
    label: str
    items: Block


@dataclass(frozen=True, slots=True)
class Branch:
    """A decision, in the words of the source."""

    id: str
    line: int
    last_line: int
    words: str
    arms: tuple[Arm, Arm]


@dataclass(frozen=True, slots=True)
class Loop:
    """What is repeated. One that is left by a break only ends no other way; an endless one is never left."""

    id: str
    line: int
    last_line: int
    words: str
    body: Block
    is_endless: bool = False
    is_left_by_break: bool = False


@dataclass(frozen=True, slots=True)
class Fork:
    """What runs side by side."""

    id: str
    line: int
    last_line: int
    arms: tuple[Arm, ...]

    @property
    def words(self) -> str:
        return "both, side by side" if len(self.arms) == 2 else f"all {len(self.arms)}, side by side"


Item = StepNode | Hidden | End | Branch | Loop | Fork
Block = tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """A handler, ready to draw; or why it cannot be drawn. `spans` are the lines of its functions, its own first."""

    block: Block
    problem: str = ""
    spans: tuple[tuple[int, int], ...] = ()


def ends(block: Sequence[Item]) -> bool:
    """Return whether control never comes past the end of a block."""
    if not block:
        return False
    match block[-1]:
        case End():
            return True
        case Branch(arms=arms):
            return all(ends(arm.items) for arm in arms)
        case Loop(is_endless=is_endless):
            return is_endless
        case Fork(arms=arms):
            return any(ends(arm.items) for arm in arms)
    return False


def parts(item: Item) -> tuple[Block, ...]:
    """Return the blocks inside an item."""
    match item:
        case Branch(arms=arms) | Fork(arms=arms):
            return tuple(arm.items for arm in arms)
        case Loop(body=body):
            return (body,)
    return ()


def every(block: Sequence[Item]) -> Iterator[Item]:
    """Yield all items of a block, also those inside others, in source order."""
    for item in block:
        yield item
        for inner in parts(item):
            yield from every(inner)
