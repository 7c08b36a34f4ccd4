"""A flow is drawn from top to bottom without crossing lines, fast, with escaped text."""

from __future__ import annotations

import time
import xml.dom.minidom
from itertools import combinations, pairwise

import pytest

from studio.diagram.canvas import Canvas, Point
from studio.diagram.layout import layout
from studio.diagram.svg import svg
from tests.studio.diagram.reading import read
from tests.studio.diagram.test_reading import CASES

LONG = "\n".join(
    f"""a = await step.do("a{n}", f, order)
if a > {n}:
    await step.do("b{n}", f)
    log(a)
    if a.x:
        return "n{n}"
else:
    log(order)
    await step.sleep("s{n}", 3)
log(a)"""
    for n in range(30)
)


def segments(canvas: Canvas) -> list[tuple[Point, Point]]:
    return [one for edge in canvas.edges for one in pairwise(edge.points) if one[0] != one[1]]


def cross(one: tuple[Point, Point], other: tuple[Point, Point]) -> bool:
    """Return whether a horizontal and a vertical line meet within both."""
    flat, steep = (one, other) if one[0][1] == one[1][1] else (other, one)
    if flat[0][1] != flat[1][1] or steep[0][0] != steep[1][0]:
        return False
    x, y = steep[0][0], flat[0][1]
    (left, right), (top, bottom) = sorted((flat[0][0], flat[1][0])), sorted((steep[0][1], steep[1][1]))
    return left < x < right and top < y < bottom


@pytest.mark.parametrize("body", [*(case[0] for case in CASES.values()), LONG])
def test_no_lines_cross_and_no_shapes_overlap(body: str) -> None:
    canvas = layout(read(body).block)
    assert not [pair for pair in combinations(segments(canvas), 2) if cross(*pair)]
    for a, b in combinations(canvas.shapes, 2):
        beside = abs(a.x - b.x) >= (a.width + b.width) / 2
        assert beside or a.y + a.height <= b.y or b.y + b.height <= a.y, (a, b)


def test_what_ends_goes_right_and_the_trunk_stays_in_the_middle() -> None:
    canvas = layout(read('if order:\n    return "refused"\nawait step.do("a", f)').block)
    places = {getattr(shape.item, "name", "if"): shape.x for shape in canvas.shapes}
    assert places["if"] == places["a"] == places["Start"] == 0
    assert places["refused"] > 0


def test_text_of_the_source_is_escaped() -> None:
    canvas = layout(read('if order < "<script>&":\n    await step.do("<b>\\u202e", f)').block)
    text = svg(canvas, icons="/icons.svg")
    assert "<script>" not in text
    assert "<b>" not in text
    assert "\u202e" not in text
    xml.dom.minidom.parseString(text)


def test_a_handler_of_300_lines_is_read_and_drawn_at_once() -> None:
    assert len(LONG.splitlines()) == 300
    flow = read(LONG)
    best = 1.0
    for _ in range(5):
        began = time.process_time()
        svg(layout(flow.block), icons="/icons.svg")
        best = min(best, time.process_time() - began)
    assert best < 0.15  # 0.015 s on a quiet machine
