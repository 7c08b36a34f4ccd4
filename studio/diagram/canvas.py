"""Shapes at their places: what a layout is made of. Each has an address, or says what leads to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from studio.diagram.flow import End, Hidden, Item, StepNode

Point = tuple[float, float]

ROUND = 6.0  # the radius of an edge's corners


@dataclass(frozen=True, slots=True)
class Shape:
    """An item at its place. `is_left`: its line number is left of it."""

    item: Item
    x: float  # of its middle
    y: float  # of its top
    width: float
    height: float
    is_left: bool

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class Edge:
    """A line through points. It was taken if control has reached all of `needs`."""

    points: tuple[Point, ...]
    needs: tuple[str, ...]
    has_arrow: bool = True

    @property
    def path(self) -> str:
        """Return the edge as an SVG path with rounded corners, in steps: equal edges have equal text."""
        here, *_ = points = self.points
        text = f"M{_n(here[0])} {_n(here[1])}"
        for before, at, after in zip(points, points[1:], points[2:], strict=False):
            a, b = _towards(at, before), _towards(at, after)
            text += f"{_step('l', here, a)}{_step('q', a, at)} {_step('', a, b)}"
            here = b
        return text + _step("l", here, points[-1])


@dataclass(frozen=True, slots=True)
class Label:
    """A word at an edge. `at` is where the text starts, or its middle."""

    text: str
    at: Point
    needs: tuple[str, ...]
    is_centered: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """The outline of a loop, or of a fork of many parts."""

    x: float
    y: float
    width: float
    height: float


@dataclass(slots=True)
class Canvas:
    """A part of the drawing with the trunk at x = 0, and how far it reaches."""

    shapes: list[Shape] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    left: float = 0.0  # negative
    right: float = 0.0
    head: float = 0.0  # where an edge from above ends
    bottom: float = 0.0
    is_open: bool = True  # control continues at the bottom
    entry: Point | None = None  # where an edge from the left may arrive
    hanging: list[Point] = field(default_factory=list)  # what ended beside the trunk: its left and its bottom

    def add(self, other: Canvas, dx: float, dy: float, *, hangs: bool = False) -> None:
        """Put another canvas on this one. One that hangs leaves the trunk where it is."""
        # Not by `replace`, which takes three times as long.
        for one in other.shapes:
            place = one.x + dx, one.y + dy
            self.shapes.append(Shape(one.item, *place, one.width, one.height, one.is_left))
        for edge in other.edges:
            self.edges.append(Edge(_moved(edge.points, dx, dy), edge.needs, edge.has_arrow))
        for word in other.labels:
            at = word.at[0] + dx, word.at[1] + dy
            self.labels.append(Label(word.text, at, word.needs, word.is_centered))
        for frame in other.frames:
            self.frames.append(Frame(frame.x + dx, frame.y + dy, frame.width, frame.height))
        self.hanging += _moved(other.hanging, dx, dy)
        if hangs:
            self.hanging.append((other.left + dx, other.bottom + dy))
        self.reach(other.left + dx, other.right + dx, 0 if hangs else other.bottom + dy)

    def below_hanging(self, right: float, top: float) -> float:
        """Return the first height, from `top` on, at which something that reaches that far right has room."""
        return max([top, *(bottom + 8 for left, bottom in self.hanging if right > left - 8)])

    @property
    def height(self) -> float:
        return max([self.bottom, *(bottom for _, bottom in self.hanging)])

    def reach(self, left: float, right: float, bottom: float = 0.0) -> None:
        self.left, self.right = min(self.left, left), max(self.right, right)
        self.bottom = max(self.bottom, bottom)

    def edge(self, *points: Point, needs: tuple[str, ...], has_arrow: bool = True) -> None:
        self.edges.append(Edge(points, needs, has_arrow))


def words_of(item: Item) -> str:
    """Return what an item says."""
    return item.name if isinstance(item, StepNode | Hidden | End) else item.words


def _moved(points: Sequence[Point], dx: float, dy: float) -> tuple[Point, ...]:
    return tuple([(x + dx, y + dy) for x, y in points])


def _towards(at: Point, other: Point) -> Point:
    """Return the point on the way to another one at which a corner begins."""
    dx, dy = other[0] - at[0], other[1] - at[1]
    length = max(abs(dx), abs(dy)) or 1.0
    part = min(ROUND, length / 2) / length
    return at[0] + dx * part, at[1] + dy * part


def _step(how: str, start: Point, end: Point) -> str:
    return f"{how}{_n(end[0] - start[0])} {_n(end[1] - start[1])}"


def _n(value: float) -> str:
    return f"{round(value, 1):g}"
