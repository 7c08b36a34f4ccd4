"""Which items of a flow may have made the steps of an instance: by kind and name, and by the number among equals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from studio.diagram.flow import Block, Branch, End, Fork, Loop, StepNode, ends
from studio.diagram.naming import GAP

Counts = dict[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Maker:
    """An item that makes a step each time control passes it. `nth` is the number of the first among equals."""

    node: StepNode
    nth: int
    is_again: bool  # it may make later ones, too

    def may_have_made(self, count: int) -> bool:
        return count == self.nth or (count > self.nth and self.is_again)


@dataclass(frozen=True, slots=True)
class Family:
    """The items that make steps of one kind and name. Of a computed name, `like` is its LIKE pattern."""

    kind: str
    name: str
    like: str
    makers: tuple[Maker, ...]

    @property
    def most(self) -> int:
        """From this number on, nothing tells the steps apart."""
        return max(one.nth for one in self.makers) + 1


def families(block: Block) -> list[Family]:
    """Return the families of a flow. Among the computed names, those that say most of a name come first."""
    found: dict[tuple[str, str], list[Maker]] = {}
    for one in _makers(block, {}, is_again=False):
        found.setdefault((one.node.kind, one.node.name), []).append(one)
    made = [
        Family(kind, name, _like(name) if makers[0].node.pattern else "", tuple(makers))
        for (kind, name), makers in found.items()
    ]
    return sorted(made, key=lambda one: -len(one.name) if one.like else 0)


def _like(name: str) -> str:
    literal = name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return literal.replace(GAP, "%")


def _makers(block: Block, counts: Counts, *, is_again: bool) -> Iterator[Maker]:
    """Yield each step with the number that the engine gives it on the first way past it."""
    for item in block:
        match item:
            case StepNode(kind=kind, name=name, is_many=is_many):
                counts[kind, name] = counts.get((kind, name), 0) + 1
                yield Maker(item, counts[kind, name], is_again or is_many)
            case Branch(arms=arms):
                own = [dict(counts) for _ in arms]
                for arm, of_arm in zip(arms, own, strict=True):
                    yield from _makers(arm.items, of_arm, is_again=is_again)
                # What ends in an arm is not counted after it.
                for of_arm in (one for one, arm in zip(own, arms, strict=True) if not ends(arm.items)):
                    counts.update({key: max(n, counts.get(key, 0)) for key, n in of_arm.items()})
            case Fork(arms=arms):
                for arm in arms:
                    yield from _makers(arm.items, counts, is_again=is_again)
            case Loop(body=body):
                yield from _makers(body, counts, is_again=True)
            case End():
                return
