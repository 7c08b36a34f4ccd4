"""Write a layout as an SVG, plain or painted. Everything that is text is escaped here."""

from __future__ import annotations

from dataclasses import replace
from html import escape as escape_html

from studio.diagram.canvas import Canvas, Edge, Frame, Label, Shape, words_of
from studio.diagram.flow import Branch, End, Hidden, Item, Loop, StepNode
from studio.diagram.paint import UNREACHED, Paint, Painting
from studio.display.invisible import visible

MARGIN = 14.0
LETTER = 7.5  # the width of one of the names' letters
SMALL = 6.4  # of one of the facts'
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


def svg(canvas: Canvas, *, icons: str, painting: Painting | None = None) -> str:
    """Return the drawing, painted with what an instance has done. `icons` is the address of the icons."""
    left, width = canvas.left - MARGIN, canvas.right - canvas.left + 2 * MARGIN
    height = canvas.height + 2 * MARGIN
    drawn = [_frame(one) for one in canvas.frames]
    # Those that were taken are above the others, with which they may share a part of the way.
    drawn += [
        _edge(one, painting) for one in sorted(canvas.edges, key=lambda one: _look(one.needs, painting))
    ]
    drawn += [_label(one, painting) for one in canvas.labels]
    drawn += [_shape(one, icons, painting) for one in canvas.shapes]
    box = f"{left:g} {-MARGIN:g} {width:g} {height:g}"
    return (
        f'<svg class="diagram{" painted" if painting else ""}" id="drawing" role="group" '
        f'aria-label="Diagram of the handler" viewBox="{box}" width="{width:g}" height="{height:g}">'
        f"{_ARROWS}{''.join(drawn)}</svg>"
    )


_ARROWS = (
    "<defs>"
    + "".join(
        f'<marker id="arrow-{look}" class="arrow {look}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
        'markerHeight="6" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z"/></marker>'
        for look in ("open", "taken")
    )
    + "</defs>"
)


def _look(needs: tuple[str, ...], painting: Painting | None) -> str:
    """Return how an edge looks: `taken`, `open` if control has not come there, or empty in a plain drawing."""
    if painting is None:
        return ""
    return "taken" if painting.is_taken(*needs) else "open"


def _edge(edge: Edge, painting: Painting | None) -> str:
    look = _look(edge.needs, painting)
    arrow = f' marker-end="url(#arrow-{look or "open"})"' if edge.has_arrow else ""
    return f'<path class="edge {look}" d="{edge.path}"{arrow}/>'


def _frame(frame: Frame) -> str:
    place = f'x="{frame.x:g}" y="{frame.y:g}" width="{frame.width:g}" height="{frame.height:g}"'
    return f'<rect class="frame" {place} rx="8"/>'


def _label(label: Label, painting: Painting | None) -> str:
    anchor = ' text-anchor="middle"' if label.is_centered else ""
    x, y = label.at
    look = _look(label.needs, painting)
    return f'<text class="word {look}" x="{x:g}" y="{y:g}"{anchor}>{escape(label.text)}</text>'


def _shape(shape: Shape, icons: str, painting: Painting | None) -> str:
    # Each at its own origin: equal shapes have equal text, which compresses better by a quarter.
    place = f'transform="translate({shape.x:g} {shape.y:g})"'
    item, shape = shape.item, replace(shape, x=0.0, y=0.0)
    paint = painting.paints.get(item.id) if painting is not None else None
    is_reached = painting is None or paint is not None or painting.is_taken(item.id)
    said = spoken(item) + (f": {paint.spoken}" if paint else "" if is_reached else ": not reached")
    classes = f"node {_outline(item)}{f' s-{paint.status}' if paint else '' if is_reached else ' open'}"
    inside = f"<title>{escape(said)}</title>{_outside(shape)}"
    inside += _inside(shape, icons, paint) if is_reached else _inside(shape, icons, Paint("", UNREACHED, ""))
    if not item.line:  # the start is no line
        return f'<g class="{classes}" {place}>{inside}</g>'
    last = f' data-last="{item.last_line}"' if item.last_line > item.line else ""
    return f'<a class="{classes}" id="n-{item.id}" href="#L{item.line}" {place}{last}>{inside}{_number(shape)}</a>'


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


def _inside(shape: Shape, icons: str, paint: Paint | None) -> str:
    item, y = shape.item, shape.middle
    words = words_of(item)
    if isinstance(item, Branch | End):
        text = _elided(words, shape.width - 30)
        return f'<text class="name" x="{shape.x:g}" y="{y + 4:g}" text-anchor="middle">{escape(text)}</text>'
    x, end = shape.x - shape.width / 2 + 12, shape.x + shape.width / 2 - 12
    icon = paint.icon if paint is not None and not isinstance(item, Loop) else _icon(item)
    picture = f'<use href="{escape(icons)}#{icon}" x="{x:g}" y="{y - 8:g}" width="16" height="16"/>'
    fact = paint.fact if paint is not None else ""
    room = end - x - 24
    if not fact:
        return f"{picture}{_name(words, x + 24, y + 4, room)}"
    if len(words) * LETTER + len(fact) * SMALL + 10 <= room:
        said = f'<text class="fact" x="{end:g}" y="{y + 4:g}" text-anchor="end">{escape(fact)}</text>'
        return f"{picture}{_name(words, x + 24, y + 4, room)}{said}"
    small = escape(_elided(fact, room * LETTER / SMALL))
    said = f'<text class="fact" x="{x + 24:g}" y="{y + 13:g}">{small}</text>'
    return f"{picture}{_name(words, x + 24, y - 2, room)}{said}"


def _name(words: str, x: float, y: float, room: float) -> str:
    return f'<text class="name" x="{x:g}" y="{y:g}">{escape(_elided(words, room))}</text>'


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
