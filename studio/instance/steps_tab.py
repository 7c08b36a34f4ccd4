"""The first tab: the steps of the instance, and what belongs to them."""

from __future__ import annotations

from studio.frame.pieces import Piece
from studio.instance.page import InstancePage
from studio.instance.steps.line import step_html
from studio.instance.tab import Context, Drawn, pieces_of

TAKES = ("upto", "open")
_PIECES = (
    "code",
    "requests",
    "notes",
    "timeline",
    "result",
    "children",
    "events",
    "logs",
    "audit-trail",
    "steps-note",
)


def count(page: InstancePage) -> int:
    return page.steps_total


def draw(page: InstancePage, context: Context) -> Drawn:
    steps = {line.anchor: Piece(step_html(line, page.instance)) for line in page.lines}
    return Drawn({**pieces_of(context, *_PIECES), **steps}, tuple(steps))
