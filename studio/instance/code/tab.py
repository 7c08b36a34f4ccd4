"""The tab "Diagram & code": the drawing and the code are those of the workflow's page, painted and with links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from studio.diagram.flow import Item, every
from studio.diagram.svg import svg
from studio.display.rendering import render_to_string
from studio.frame.addresses import cursor
from studio.frame.icons import icons_address
from studio.frame.pieces import Piece
from studio.instance.code.beside import beside
from studio.instance.code.painting import Painted, Part, painted
from studio.instance.code_version import CHOICES, Version, version_of
from studio.instance.page import InstancePage
from studio.instance.tab import Context, Drawn
from studio.workflows.code import CodePage, Handler, lines_html, page_of

TEMPLATE = "studio/instance/code/tab.html"
TAKES = ("from", "version", "list")


@dataclass(frozen=True, slots=True)
class Entry:
    """An item in the list of the drawing, with what it has made."""

    item: Item
    words: str
    part: Part | None
    is_reached: bool


def draw(page: InstancePage, context: Context) -> Drawn:
    """Render the drawing and what stands beside the lines; for the page, also the code itself."""
    given = context["given"]
    version = version_of(page.instance, given.get("version", ""))
    follow = {"version": version.shown} if version.shown else {}
    is_listed = bool(given.get("list"))
    if version.is_difference:
        return Drawn(_difference(page, version, is_page=context["is_page"]), follow=follow)
    code = page_of(version.source(page.instance.workflow), cursor(given.get("from", "")) or 1)
    handler = code.handler
    done = None
    if handler is not None and not handler.flow.problem:
        done = painted(page.instance, handler.flow, handler.families, page.place)
    facts = {} if done is None or handler is None else _beside(page, handler, code, done)
    pieces = {"version": _version(page, version)}
    if handler is not None and done is not None:
        pieces |= _drawing(handler, done)
        pieces |= {"outline": _outline(code, done)} if is_listed else {}
    if context["is_page"]:
        shown = {name: piece.html for name, piece in pieces.items()}
        pieces = {"handler": _handler(page, version, code, facts, shown)}
    else:
        pieces |= {f"f-{line}": Piece(html) for line, html in facts.items()}
    follow |= {"list": "1"} if is_listed else {}
    return Drawn(pieces, follow=follow | ({"from": str(code.first)} if code.first > 1 else {}))


def _difference(page: InstancePage, version: Version, *, is_page: bool) -> dict[str, Piece]:
    said = _version(page, version)
    if not is_page:
        return {"version": said}
    found = version.compared(page.instance.workflow)
    context = {"shown": said.html, "found": found, "names": ("at the start", "now")}
    return {"handler": Piece(render_to_string("studio/instance/code/difference.html", context))}


def _drawing(handler: Handler, done: Painted) -> dict[str, Piece]:
    drawn = svg(handler.canvas, icons=icons_address(), painting=done.painting)
    loose = {"loose": done.loose, "address": done.loose_address}
    return {
        "diagram": Piece(f'<div id="diagram">{drawn}</div>'),
        "loose": Piece(render_to_string("studio/instance/code/loose.html", loose)),
    }


def _outline(code: CodePage, done: Painted) -> Piece:
    """Render the drawing as a list, which a page has if its address asks for it: it is long."""
    entries = [
        Entry(one.item, one.words, done.parts.get(one.item.id), one.item.id in done.painting.taken)
        for one in code.entries
    ]
    return Piece(render_to_string("studio/instance/code/outline.html", {"entries": entries}))


def _beside(page: InstancePage, handler: Handler, code: CodePage, done: Painted) -> dict[int, str]:
    """Return what stands beside the lines that are shown."""
    numbers = {row.line.number for row in code.rows}
    items: dict[int, list[Item]] = {}
    for item in every(handler.flow.block):
        if item.line in numbers:
            items.setdefault(item.line, []).append(item)
    paused_at = page.instance.paused_at
    return {line: beside(line, those, done, paused_at) for line, those in items.items()}


def _version(page: InstancePage, version: Version) -> Piece:
    context = {
        "version": version,
        "is_past": page.is_past,
        "code": page.code,
        "choices": _choices(page, version) if version.shown else (),
        "compared": version.compared(page.instance.workflow) if version.shown else None,
    }
    return Piece(render_to_string("studio/instance/code/version.html", context))


def _choices(page: InstancePage, version: Version) -> list[dict[str, object]]:
    return [
        {
            "name": name,
            "label": label,
            "address": f"?{page.place}tab=code&version={name}",
            "is_shown": name == version.shown,
        }
        for name, label in CHOICES.items()
    ]


def _handler(
    page: InstancePage, version: Version, code: CodePage, facts: Mapping[int, str], shown: Mapping[str, str]
) -> Piece:
    found = version.compared(page.instance.workflow)
    marks = {} if found is None else found.marks_of_old() if version.is_of_start else found.marks_of_new()
    asked = f"version={version.shown}&" if version.shown else ""
    context = {
        "code": code,
        "code_lines": lines_html(code, facts, marks),
        "shown": shown,
        "from_query": f"?{page.place}tab=code&{asked}from=",
        "is_in_code": not version.is_gone,
        "is_known": version.is_known,
        "steps_address": f"?{page.place}".rstrip("&"),
    }
    return Piece(render_to_string("studio/instance/code/handler.html", context))
