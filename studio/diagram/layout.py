"""Lay a flow out: one trunk from top to bottom; what ends goes right, what skips goes round outside.

No lines cross: each arm has the height of its branch to itself, right of all that is left of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from studio.diagram.canvas import Canvas, Frame, Label, Shape, words_of
from studio.diagram.flow import Arm, Branch, End, Fork, Hidden, Item, Loop, StepNode, ends

GAP = 24.0  # between an item and the next
NODE, NARROW = 240.0, 172.0
HEIGHT, LOW, PILL = 38.0, 30.0, 26.0
NUMBER = 46.0  # for a line number
AIR = 44.0  # between the trunk and what goes right: room for a word
LETTER = 7.6  # the width of one, in the drawing's font
MOST_ARMS = 4  # of a fork, beside each other
START = "start"


def layout(block: Sequence[Item]) -> Canvas:
    """Return the drawing of a whole handler, from its start."""
    canvas = Canvas()
    start = End(START, 0, 0, START, "Start")
    canvas.shapes.append(Shape(start, 0, 0, 92, PILL, True))
    canvas.reach(-46, 46, PILL)
    if block:
        drawn = _block(block, "", NODE, is_left=True)
        canvas.edge((0, PILL), (0, PILL + GAP + drawn.head), needs=(block[0].id,))
        canvas.add(drawn, 0, PILL + GAP)
    canvas.reach(-NODE / 2 - NUMBER, NODE / 2)
    return canvas


def _block(block: Sequence[Item], after: str, width: float, *, is_left: bool) -> Canvas:
    """Lay out a block. `after` is the id of what follows it."""
    canvas = Canvas()
    for at, item in enumerate(block):
        top = canvas.bottom
        follows = block[at + 1].id if at + 1 < len(block) else after
        drawn = _item(item, follows, width, is_left=is_left)
        if at:
            top = canvas.below_hanging(drawn.right, top + GAP)
            canvas.edge((0, canvas.bottom), (0, top + drawn.head), needs=(item.id,))
        else:
            canvas.entry, canvas.head = drawn.entry, drawn.head
        canvas.add(drawn, 0, top)
    canvas.is_open = not ends(block)
    if canvas.is_open and canvas.height > canvas.bottom:
        canvas.edge((0, canvas.bottom), (0, canvas.height), needs=(after,), has_arrow=False)
    canvas.bottom, canvas.hanging = canvas.height, []
    return canvas


def _item(item: Item, after: str, width: float, *, is_left: bool) -> Canvas:
    match item:
        case StepNode() | Hidden():
            return _shape(item, width, HEIGHT, is_left=is_left)
        case End():
            return _shape(item, _fit(item, 92, width), PILL, is_left=is_left)
        case Branch():
            return _branch(item, after, width, is_left=is_left)
        case Loop():
            return _loop(item, width, is_left=is_left)
        case Fork():
            return _fork(item, after) if len(item.arms) <= MOST_ARMS else _stack(item, after)


def _shape(item: Item, width: float, height: float, *, is_left: bool) -> Canvas:
    canvas = Canvas(bottom=height, entry=(-width / 2, height / 2))
    canvas.shapes.append(Shape(item, 0, 0, width, height, is_left))
    half = width / 2
    canvas.reach(-half - (NUMBER if is_left else 0), half + (0 if is_left else NUMBER))
    return canvas


def _fit(item: Item, least: float, most: float) -> float:
    return max(least, min(most, len(words_of(item)) * LETTER + 36))


def _branch(item: Branch, after: str, width: float, *, is_left: bool) -> Canvas:
    """Draw a decision: one arm goes on below it, the other goes right, or round outside if it is empty."""
    trunk, side = _sides(item)
    hexagon = _fit(item, 96, width + 40)
    below = _block(trunk.items, after, width, is_left=is_left)
    right = _block(side.items, after, NARROW, is_left=False)
    # The middle of the hexagon is that of what an edge enters from the left.
    top = max(0.0, (right.entry[1] if right.entry else 0.0) - LOW / 2)
    canvas = _shape_at(item, hexagon, top, is_left=is_left)
    y = canvas.bottom
    if trunk.items:
        first = trunk.items[0].id
        canvas.edge((0, y), (0, y + GAP + below.head), needs=(trunk.key, first))
        canvas.add(below, 0, y + GAP)
    else:
        # Room for the word.
        canvas.edge((0, y), (0, y + 10), needs=(trunk.key, after), has_arrow=False)
        canvas.bottom += 10
    canvas.labels.append(Label(trunk.label, (8, y + 16), (trunk.key,)))
    canvas.is_open = below.is_open or right.is_open
    middle = top + LOW / 2
    if side.items:
        _to_the_right(canvas, trunk, side, right, hexagon / 2, middle, after)
    else:
        _round_outside(canvas, trunk, side, hexagon / 2, middle, after)
    canvas.labels.append(Label(side.label, (hexagon / 2 + 8, middle - 6), (side.key,)))
    return canvas


def _sides(item: Branch) -> tuple[Arm, Arm]:
    """Return the arm of a branch that stays in the trunk, and the one that leaves it."""
    yes, no = item.arms
    if ends(yes.items) and not ends(no.items):
        return no, yes
    is_chain = len(no.items) == 1 and isinstance(no.items[0], Branch)
    if no.items and not ends(no.items) and (is_chain or len(no.items) > len(yes.items)):
        return no, yes
    return yes, no


def _shape_at(item: Branch, width: float, top: float, *, is_left: bool) -> Canvas:
    drawn = _shape(item, width, LOW, is_left=is_left)
    canvas = Canvas(entry=(-width / 2, top + LOW / 2), head=top)
    canvas.add(drawn, 0, top)
    return canvas


def _to_the_right(
    canvas: Canvas, trunk: Arm, arm: Arm, drawn: Canvas, start: float, middle: float, after: str
) -> None:
    """Put an arm right of the trunk, and lead it back if it continues."""
    x = max(canvas.right, start) + AIR - drawn.left
    needs = (arm.key, arm.items[0].id)
    bottom = canvas.bottom
    if drawn.entry is not None:
        canvas.edge((start, middle), (x + drawn.entry[0], middle), needs=needs)
        y = middle - drawn.entry[1]
    else:
        y = middle + GAP
        canvas.edge((start, middle), (x, middle), (x, y), needs=needs)
    goes_on = not ends(trunk.items)
    canvas.add(drawn, x, y, hangs=goes_on and not drawn.is_open)
    if drawn.is_open:
        _merge(canvas, (x, y + drawn.bottom), (arm.key, after), bottom if goes_on else None)


def _round_outside(canvas: Canvas, trunk: Arm, side: Arm, start: float, middle: float, after: str) -> None:
    """Lead an arm without items round outside the other one."""
    x, bottom = max(canvas.right, start) + 24, canvas.bottom
    canvas.reach(0, x + 4)
    merged = bottom + 14
    canvas.edge((start, middle), (x, middle), (x, merged), (4, merged), needs=(side.key, after))
    canvas.bottom = merged
    if not ends(trunk.items):
        canvas.edge((0, bottom), (0, merged), needs=(trunk.key, after), has_arrow=False)


def _merge(canvas: Canvas, start: tuple[float, float], needs: tuple[str, ...], trunk: float | None) -> None:
    """Lead what continues at `start` back to the trunk, whose own line ends at `trunk`."""
    merged = canvas.bottom + 14
    canvas.edge(start, (start[0], merged), (4, merged), needs=needs)
    if trunk is not None:
        canvas.edge((0, trunk), (0, merged), needs=needs[1:], has_arrow=False)
    canvas.bottom = merged


def _loop(item: Loop, width: float, *, is_left: bool) -> Canvas:
    """Draw a frame with the loop's words at its top, and a line from the end of its body back to them."""
    canvas = Canvas()
    head = _fit(item, 150, width + 60) + 20
    canvas.add(_shape(item, head, LOW, is_left=is_left), 0, 12)
    body = _block(item.body, item.id, width, is_left=is_left)
    top = 12 + LOW
    canvas.edge((0, top), (0, top + GAP + body.head), needs=(item.id, item.body[0].id))
    canvas.add(body, 0, top + GAP)
    if body.is_open:
        # Left of the line numbers, so that nothing lies between.
        x, y = canvas.left - 10, canvas.bottom + 10
        back = (f"{item.id}/again",)
        ahead = -head / 2 - (NUMBER if is_left else 0)
        canvas.edge((0, canvas.bottom), (0, y), (x, y), (x, 12 + LOW / 2), (ahead, 12 + LOW / 2), needs=back)
        canvas.reach(x, 0, y)
    left, right = canvas.left - 10, max(canvas.right, head / 2) + 12
    bottom = canvas.bottom + 12
    canvas.frames.append(Frame(left, 0, right - left, bottom))
    canvas.reach(left, right, bottom)
    canvas.is_open = not item.is_endless
    return canvas


def _fork(item: Fork, after: str) -> Canvas:
    """Draw parts side by side, with the words above them."""
    canvas = Canvas(bottom=18)
    half = len(item.words) * 3.2 + 8
    canvas.labels.append(Label(item.words, (0, 13), (item.id,), is_centered=True))
    number = len(item.arms)
    drawn = [_block(arm.items, after, NARROW, is_left=at < number / 2) for at, arm in enumerate(item.arms)]
    total = sum(one.right - one.left for one in drawn) + 20 * (number - 1)
    edge, bottom = -total / 2, max(one.bottom for one in drawn) + 40 + 14
    for arm, one in zip(item.arms, drawn, strict=True):
        x = edge - one.left
        edge += one.right - one.left + 20
        needs = (item.id, arm.items[0].id)
        if abs(x) < half + 12:
            canvas.edge((x, 18), (x, 40 + one.head), needs=needs)
        else:
            canvas.edge((half if x > 0 else -half, 9), (x, 9), (x, 40 + one.head), needs=needs)
        canvas.add(one, x, 40)
        if one.is_open:
            canvas.edge((x, 40 + one.bottom), (x, bottom), (0, bottom), needs=(after,), has_arrow=False)
    canvas.bottom = bottom
    canvas.is_open = not ends((item,))
    return canvas


def _stack(item: Fork, after: str) -> Canvas:
    """Draw many parts in a frame, one below the other, without lines between them."""
    canvas = Canvas(bottom=22)
    canvas.labels.append(Label(item.words, (0, 20), (item.id,), is_centered=True))
    for arm in item.arms:
        top = canvas.bottom + 10
        canvas.add(_block(arm.items, after, NODE, is_left=True), 0, top)
    left, right, bottom = canvas.left - 8, canvas.right + 12, canvas.bottom + 12
    canvas.frames.append(Frame(left, 0, right - left, bottom))
    canvas.reach(left, right, bottom)
    canvas.is_open = not ends((item,))
    return canvas
