"""Write the bars of a row as an SVG. Without a template for each: a page has hundreds. What is text is escaped here."""

from __future__ import annotations

from html import escape

from django.utils.safestring import SafeString, mark_safe

from studio.instance.timeline import Bar, Line

RECTS = {"queued": (6, 9), "undo": (5, 11), "group": (5, 11), "solid": (5, 11)}  # top and height
NARROW = {"next": (5, 11, 11), "kept": (4, 7, 13)}  # top, width and height


def lane(drawn: Line | None) -> SafeString:
    """Return the drawing of a row, which repeats the marks of the scale."""
    bars = "".join(_bar(bar) for bar in drawn.bars) if drawn is not None else ""
    # Safe: numbers, names of statuses and kinds, and titles, which are escaped.
    return mark_safe(  # noqa: S308
        f'<svg height="30" aria-hidden="true"><use href="#scale-marks"/>{bars}</svg>'
    )


def _bar(bar: Bar) -> str:
    return f'<g class="bar s-{escape(bar.status)}"><title>{escape(bar.title)}</title>{_shape(bar)}{_number(bar)}</g>'


def _shape(bar: Bar) -> str:
    kind = bar.kind
    if kind in RECTS:
        top, height = RECTS[kind]
        look = "solid fail" if bar.is_failed else kind
        return f'<rect class="{look}" x="{bar.x}%" y="{top}" width="{bar.width}%" height="{height}" rx="2"/>'
    if kind in NARROW:
        top, width, height = NARROW[kind]
        return f'<rect class="{kind}" x="{bar.x}%" y="{top}" width="{width}" height="{height}" rx="2"/>'
    if kind == "mark":
        return f'<circle cx="{bar.x}%" cy="10.5" r="4"/>'
    return f'<line class="{escape(kind)}" x1="{bar.x}%" x2="{bar.end}%" y1="10.5" y2="10.5"/>'


def _number(bar: Bar) -> str:
    if not bar.is_numbered:
        return ""
    aside = ' dx="5.5"' if bar.kind == "next" else ""
    return f'<text class="n" x="{bar.middle}%"{aside} y="27">{bar.number}</text>'
