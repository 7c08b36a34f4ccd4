"""The pieces in which a page is drawn and patched, and how they are written for htmx."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from django.template.loader import render_to_string

_TIME_TEXT = re.compile(r"(?<=hx-morph-skip-children>)[^<]*(?=</time>)")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a page with an id of its own, so that it is patched in its place."""

    html: str
    swap: str = "outerMorph"

    @property
    def print(self) -> str:
        """What must differ for it to be sent again. The text of a time is the browser's, which keeps it ticking."""
        return _TIME_TEXT.sub("", self.html)


@dataclass(frozen=True, slots=True)
class Drawing:
    """All pieces of a live view at one moment. `order` is that of its steps, which may grow; `is_done` ends it."""

    pieces: Mapping[str, Piece]
    order: tuple[str, ...] = ()
    is_done: bool = False
    say: str = ""
    is_personal: bool = False  # another person with the same rights may see something else
    forms: tuple[str, ...] = ()  # of the requests that are drawn, by their references

    @property
    def tag(self) -> str:
        text = "\0".join(f"{name}\0{piece.print}" for name, piece in self.pieces.items())
        return hashlib.sha256(text.encode()).hexdigest()[:20]


def frame(pieces: Mapping[str, Piece]) -> str:
    """Write pieces as one message for htmx."""
    return "".join(partial(name, piece) for name, piece in pieces.items())


def partial(target: str, piece: Piece) -> str:
    return f'<hx-partial hx-target="#{escape(target)}" hx-swap="{piece.swap}">{piece.html}</hx-partial>'


def more_piece(newer: int, address: str) -> Piece:
    """Draw how much came since the page was made, and where it is shown."""
    return Piece(render_to_string("studio/frame/more.html", {"newer": newer, "address": address}))


def frame_of(drawing: Drawing) -> str:
    """Write a whole drawing as one answer of partials."""
    loose = {name: piece for name, piece in drawing.pieces.items() if name not in set(drawing.order)}
    text = frame(loose)
    if drawing.order:
        steps = "".join(drawing.pieces[name].html for name in drawing.order)
        text += partial("steps", Piece(steps, "innerMorph"))
    return text


def flash(text: str, status: str) -> str:
    """Write the message above the page as a partial."""
    html = render_to_string("studio/frame/flash.html", {"text": text, "status": status})
    return partial("flash", Piece(html, "innerHTML"))
