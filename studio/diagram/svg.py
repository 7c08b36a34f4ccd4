"""Write a layout as an SVG. Everything that is text is escaped here."""

from __future__ import annotations

from html import escape as escape_html

from studio.diagram.canvas import Canvas, Edge, Frame, Label, Shape, words_of
from studio.diagram.flow import Branch, End, Hidden, Item, Loop, StepNode
from studio.display.invisible import visible

MARGIN = 14.0
LETTER = 7.5  # the width of one of the names' letters
KINDS = {
    "do": ("square-function", "step"),
    "sleep": ("moon", "sleep"),
    "event": ("inbox", "wait for an event"),
    "request": ("user", "request"),
    "child": ("workflow", "child"),
    "parallel": ("git-fork", "parallel children"),
    "map": ("layers", "map"),
    "progress": ("flag", "milestone"),
}


def escape(text: str) -> str:
    """Return text as HTML. What turns the direction of text must not change how it reads."""
    return escape_html(visible(text))


def svg(canvas: Canvas, *, icons: str) -> str:
    """Return the drawing. `icons` is the address of the icons."""
    left, width = canvas.left - MARGIN, canvas.right - canvas.left + 2 * MARGIN
    height = canvas.height + 2 * MARGIN
    drawn = [_frame(one) for one in canvas.frames]
    drawn += [_edge(one) for one in canvas.edges]
    drawn += [_label(one) for one in canvas.labels]
    drawn += [_shape(one, icons) for one in canvas.shapes]
    box = f"{left:g} {-MARGIN:g} {width:g} {height:g}"
    return (
        '<svg class="diagram" id="drawing" role="group" '
        f'aria-label="Diagram of the handler" viewBox="{box}" width="{width:g}" height="{height:g}">'
        f"{_ARROW}{''.join(drawn)}</svg>"
    )


_ARROW = (
    '<defs><marker id="arrow" class="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
    'markerHeight="6" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>'
)


def _edge(edge: Edge) -> str:
    arrow = ' marker-end="url(#arrow)"' if edge.has_arrow else ""
    return f'<path class="edge" d="{edge.path}"{arrow}/>'


def _frame(frame: Frame) -> str:
    place = f'x="{frame.x:g}" y="{frame.y:g}" width="{frame.width:g}" height="{frame.height:g}"'
    return f'<rect class="frame" {place} rx="8"/>'


def _label(label: Label) -> str:
    anchor = ' text-anchor="middle"' if label.is_centered else ""
    x, y = label.at
    return f'<text class="word" x="{x:g}" y="{y:g}"{anchor}>{escape(label.text)}</text>'


def _shape(shape: Shape, icons: str) -> str:
    item = shape.item
    classes = f"node {_outline(item)}"
    inside = f"<title>{escape(spoken(item))}</title>{_outside(shape)}{_inside(shape, icons)}"
    if not item.line:  # the start is no line
        return f'<g class="{classes}">{inside}</g>'
    return (
        f'<a class="{classes}" id="n-{item.id}" href="#L{item.line}" data-item="{item.id}" '
        f'data-first="{item.line}" data-last="{item.last_line}">{inside}{_number(shape)}</a>'
    )


def spoken(item: Item) -> str:
    """Return an item in words, for titles and lists."""
    what = {Branch: "if", Loop: "loop", Hidden: "steps that the code builds:"}.get(type(item), "")
    if isinstance(item, StepNode):
        what = KINDS.get(item.kind, ("", item.kind))[1]
    if isinstance(item, Branch) and item.words.startswith("except"):
        what = ""
    if isinstance(item, End):
        what = "" if item.how in ("start", "break", "next") or item.name.startswith("raise") else "end:"
    said = " ".join(part for part in (what, words_of(item)) if part)
    if isinstance(item, StepNode) and item.is_many:
        said += ", one for each"
    if isinstance(item, StepNode) and item.within:
        said += f", in {item.within}()"
    return said


def _outline(item: Item) -> str:
    match item:
        case StepNode(is_many=is_many, kind=kind):
            return "step stack" if is_many or kind in ("map", "parallel") else "step"
        case End(how=how):
            return f"pill {how}"
        case Branch():
            return "hexagon"
        case Loop():
            return "loop"
    return "step hidden"


def _outside(shape: Shape) -> str:
    x, y, width, height = shape.x - shape.width / 2, shape.y, shape.width, shape.height
    if isinstance(shape.item, Branch):
        cut, end, middle = 11.0, x + width, y + height / 2
        points = (
            (x, middle),
            (x + cut, y),
            (end - cut, y),
            (end, middle),
            (end - cut, y + height),
            (x + cut, y + height),
        )
        return f'<polygon points="{" ".join(f"{px:g},{py:g}" for px, py in points)}"/>'
    radius = height / 2 if isinstance(shape.item, End | Loop) else 6
    rect = f'width="{width:g}" height="{height:g}" rx="{radius:g}"/>'
    behind = f'<rect x="{x + 5:g}" y="{y + 5:g}" {rect}' if "stack" in _outline(shape.item) else ""
    return f'{behind}<rect class="face" x="{x:g}" y="{y:g}" {rect}'


def _inside(shape: Shape, icons: str) -> str:
    item, y = shape.item, shape.middle
    words = words_of(item)
    if isinstance(item, Branch | End):
        text = _elided(words, shape.width - 30)
        return f'<text class="name" x="{shape.x:g}" y="{y + 4:g}" text-anchor="middle">{escape(text)}</text>'
    x = shape.x - shape.width / 2 + 12
    text = _elided(words, shape.width - 48)
    return (
        f'<use href="{escape(icons)}#{_icon(item)}" x="{x:g}" y="{y - 8:g}" width="16" height="16"/>'
        f'<text class="name" x="{x + 24:g}" y="{y + 4:g}">{escape(text)}</text>'
    )


def _icon(item: Item) -> str:
    match item:
        case StepNode(kind=kind):
            return KINDS.get(kind, ("square-function", ""))[0]
        case Loop():
            return "rotate-cw"
    return "braces"


def _number(shape: Shape) -> str:
    half, y = shape.width / 2 + 12, shape.middle + 4
    x, anchor = (shape.x - half, "end") if shape.is_left else (shape.x + half, "start")
    if isinstance(shape.item, Branch) and not shape.is_left:  # edges are at both of its sides
        x, y, anchor = shape.x + half - 22, shape.y - 5, "end"
    return f'<text class="number" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{shape.item.line}</text>'


def _elided(text: str, width: float) -> str:
    most = max(int(width / LETTER), 4)
    return text if len(text) <= most else f"{text[: most - 1]}…"
