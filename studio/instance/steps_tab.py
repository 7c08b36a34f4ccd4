"""The first tab: the steps of the instance with their times, and the pane of one."""

from __future__ import annotations

from studio.display.rendering import render_to_string
from studio.frame.pieces import Piece
from studio.instance.lane import lane
from studio.instance.page import InstancePage
from studio.instance.steps.ahead import Ahead, steps_ahead
from studio.instance.steps.line import Line, Toggle, row_html
from studio.instance.steps.minimap import minimap
from studio.instance.steps.nested import PAGE
from studio.instance.tab import Context, Drawn, pieces_of
from studio.instance.window import OF_WINDOW

TAKES = (*OF_WINDOW, "open", "step")
_PIECES = (
    "code",
    "requests",
    "notes",
    "timeline",
    "start",
    "result",
    "legend",
    "children",
    "steps-note",
)


def count(page: InstancePage) -> int:
    return page.part.total


def draw(page: InstancePage, context: Context) -> Drawn:
    """Render each step as a row, and a row for its pane, which belongs to the browser."""
    steps: dict[str, Piece] = {}
    for line in page.lines:
        drawn = page.timeline.lines.get(line.step.seq)
        steps[line.anchor] = Piece(row_html(line, page.instance, drawn))
        steps[f"p-{line.step.seq}"] = Piece(pane_row(str(line.step.seq)))
        if line.toggle is not None and line.toggle.page and line.toggle.pages > 1:
            steps[f"m-{line.step.seq}"] = Piece(_pager(line, line.toggle))
    shared = {**pieces_of(context, *_PIECES), "ahead": _ahead(page), **_map(page, context)}
    return Drawn({**shared, **steps}, tuple(steps))


def _ahead(page: InstancePage) -> Piece:
    """Render the steps that have not started: only below all those that have."""
    has_all = page.window.is_newest and len(page.part.steps) == page.part.total
    is_open = page.unfinished and not page.is_past
    found = steps_ahead(page.instance, page.lines) if is_open and has_all else Ahead()
    return Piece(render_to_string("studio/instance/steps/ahead.html", {"ahead": found, "lane": lane(None)}))


def _map(page: InstancePage, context: Context) -> dict[str, Piece]:
    """Render the map once for the page: it reads all steps."""
    found = minimap(page.instance, page.part, page.window) if context["is_page"] else None
    if found is None:
        return {}
    return {
        "minimap": Piece(render_to_string("studio/instance/steps/minimap.html", {"d": page, "map": found}))
    }


def _pager(line: Line, toggle: Toggle) -> str:
    """Render the row between a step and the page of those inside it that is shown."""
    first = (toggle.page - 1) * PAGE + 1
    begun = line.nested.begun if line.nested is not None else 0
    shown = {"line": line, "first": first, "last": min(first + PAGE - 1, begun)}
    return render_to_string("studio/instance/steps/rows-pager.html", shown)


def pane_row(name: str, pane: str = "") -> str:
    """Return the row under a row that holds its pane while it is open. A morph leaves what is in it as it is."""
    return f'<tr id="p-{name}" class="pane-row" role="row" hx-morph-skip-children>{pane}</tr>'
