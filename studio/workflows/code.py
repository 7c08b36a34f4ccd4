"""The code of a workflow with its drawing, ready to render."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from django.utils.safestring import SafeString, mark_safe

from engine.declare.registry import workflows as registry
from engine.lints import source_of
from engine.lints.source import Source
from engine.values.files import shown_file
from studio.diagram.canvas import Canvas
from studio.diagram.flow import Flow, Item, every
from studio.diagram.layout import layout
from studio.diagram.listing import CodeLine, Listing, listing
from studio.diagram.matching import Family, families
from studio.diagram.reading import NO_SOURCE, flow_of, too_many_parts
from studio.diagram.svg import spoken, svg
from studio.display.rendering import render_to_string
from studio.frame.icons import icons_address
from studio.frame.pieces import Piece
from studio.workflows.lints import Line as Lint

WINDOW = 1_000  # lines of code on a page
NOTHING: Mapping[int, str] = {}
Found = tuple[Source, ast.AsyncFunctionDef]
_LINE = re.compile(r'href="#L([0-9]+)"')


@dataclass(frozen=True, slots=True)
class Handler:
    """A workflow's handler, read once for each version of its file."""

    function: str
    flow: Flow
    canvas: Canvas
    listing: Listing
    families: tuple[Family, ...]

    @property
    def span(self) -> tuple[int, int]:
        return self.flow.spans[0] if self.flow.spans else (0, 0)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of code with what belongs to it."""

    line: CodeLine
    item: str  # the id of the first item of this line, if it has one
    begins: bool  # a function other than the handler
    findings: tuple[Lint, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """An item in the list beside the drawing. `place` is the start of the address of its line."""

    item: Item
    words: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class CodePage:
    """What the page of a handler shows. `first` and `last` count the lines that are shown, from 1."""

    handler: Handler | None
    file: str = ""
    rows: tuple[Row, ...] = ()
    first: int = 1
    last: int = 0
    entries: tuple[Entry, ...] = ()
    loose: tuple[Lint, ...] = ()  # findings of lines that are not shown

    @property
    def problem(self) -> str:
        return NO_SOURCE if self.handler is None else self.handler.flow.problem

    @property
    def total(self) -> int:
        return len(self.handler.listing.lines) if self.handler is not None else 0

    @property
    def before(self) -> int | None:
        return max(self.first - WINDOW, 1) if self.first > 1 else None

    @property
    def after(self) -> int | None:
        return self.last + 1 if self.last < self.total else None


def code_page(name: str, first: int = 1, lints: Sequence[Lint] = ()) -> CodePage:
    """Return the page of a handler from its line `first` on, with these findings beside their lines."""
    return page_of(source_now(name), first, lints)


def page_of(
    found: Found | None, first: int = 1, lints: Sequence[Lint] = (), *, version: str = ""
) -> CodePage:
    """Return the same page of a source, which may be that of another version."""
    if found is None:
        return CodePage(None, loose=tuple(lints))
    source = found[0]
    handler = handler_of(found)
    start = min(max(first, 1), max(len(handler.listing.lines), 1)) - 1
    shown = handler.listing.lines[start : start + WINDOW]
    items = {one.line: one.id for one in reversed([*every(handler.flow.block)])}
    by_line = _by_line(lints, source.file)
    places = _places(handler.listing, start, version)
    rows = tuple(
        Row(one, items.get(one.number, ""), one.number in handler.listing.others, by_line.pop(one.number, ()))
        for one in shown
    )
    return CodePage(
        handler,
        shown_file(source.file) if Path(source.file).is_absolute() else source.file,
        rows,
        start + 1,
        start + len(shown),
        tuple(Entry(one, spoken(one), places.get(one.line, "")) for one in every(handler.flow.block)),
        (*(one for rest in by_line.values() for one in rest), *_elsewhere(lints, source.file)),
    )


def diagram_pieces(handler: Handler, entries: Sequence[Entry], *, is_listed: bool) -> dict[str, Piece]:
    """Return the drawing, and the same as a list if the address asks for it."""
    if handler.flow.problem:
        return {}
    places = {entry.item.line: entry.place for entry in entries if entry.place}
    drawn = _LINE.sub(
        lambda link: f'href="{places.get(int(link[1]), "")}#L{link[1]}"',
        svg(handler.canvas, icons=icons_address()),
    )
    pieces = {"diagram": Piece(f'<div id="diagram">{drawn}</div>')}
    if is_listed:
        pieces["outline"] = Piece(render_to_string("studio/diagram/outline.html", {"entries": entries}))
    return pieces


def lines_html(
    page: CodePage, beside: Mapping[int, str] = NOTHING, marks: Mapping[int, str] = NOTHING
) -> SafeString:
    """Return the lines as HTML. `beside` is HTML after the code of a line, by its number; `marks` is before it."""
    # Without a template for each: there are up to a thousand.
    # Safe: numbers, ids made of numbers, and what was escaped when it was made.
    shown = (
        _row_html(row, beside.get(row.line.number, ""), marks.get(row.line.number, "")) for row in page.rows
    )
    return mark_safe("".join(shown))  # noqa: S308


def _row_html(row: Row, beside: str, mark: str) -> str:
    number = row.line.number
    leads_to = f"n-{row.item}" if row.item else f"L{number}"
    looks = " ".join(look for look, has in (("begins", row.begins), ("changed", mark)) if has)
    begins = f' class="{looks}"' if looks else ""
    link = f'<a class="n{" item" if row.item else ""}" href="#{leads_to}">{number}</a>'
    found = "".join(render_to_string("studio/diagram/finding.html", {"one": one}) for one in row.findings)
    return f'<li id="L{number}"{begins}>{link}{mark}<code>{row.line.html}</code>{beside}</li>{found}'


def source_now(name: str) -> Found | None:
    """Return the source that this process has loaded."""
    if name not in registry:
        return None
    source, handler = source_of(registry[name])
    return None if source is None or handler is None else (source, handler)


def handler_of(found: Found) -> Handler:
    return _read(*found)


# The parsed file is the key: another version of it is another one.
@functools.lru_cache(maxsize=200)
def _read(source: Source, handler: ast.AsyncFunctionDef) -> Handler:
    flow = flow_of(source, handler)
    try:
        canvas = layout(flow.block)
    except RecursionError:
        flow = too_many_parts(flow.spans[0])
        canvas = layout(flow.block)
    code = listing(source.text, flow.spans)
    return Handler(handler.name, flow, canvas, code, tuple(families(flow.block)))


def page_with(at: int, version: str = "") -> str:
    """Return the query string of the page with a line by its place in the listing; it is empty for the first page."""
    parts = {"version": version, "from": str(at // WINDOW * WINDOW + 1) if at >= WINDOW else ""}
    query = urlencode({name: value for name, value in parts.items() if value})
    return f"?{query}" if query else ""


def _places(code: Listing, start: int, version: str) -> dict[int, str]:
    """Return what leads to each line that a page does not show: the query string of the page that does."""
    return {
        line.number: page_with(at, version) or "?from=1"
        for at, line in enumerate(code.lines)
        if not start <= at < start + WINDOW
    }


def _by_line(lints: Sequence[Lint], file: str) -> dict[int, tuple[Lint, ...]]:
    found: dict[int, tuple[Lint, ...]] = {}
    for one in lints:
        if one.finding.file == file:
            found[one.finding.line] = (*found.get(one.finding.line, ()), one)
    return found


def _elsewhere(lints: Sequence[Lint], file: str) -> tuple[Lint, ...]:
    return tuple(one for one in lints if one.finding.file != file)
