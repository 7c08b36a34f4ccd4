"""The pieces in which pages are rendered and updated, and how they are written: in a page, and for htmx."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.utils.safestring import mark_safe
from django_htmx.middleware import HtmxDetails

from studio.display.rendering import render, render_to_string

_TIME_TEXT = re.compile(r"(?<=hx-morph-skip-children>)[^<]*(?=</time>)")


class HtmxRequest(HttpRequest):
    """A request with `htmx`, which is true if htmx sent it."""

    htmx: HtmxDetails


def with_htmx(request: HttpRequest) -> HtmxRequest:
    """Set `htmx` if the site has no middleware that does."""
    if not hasattr(request, "htmx"):
        request.htmx = HtmxDetails(request)  # type: ignore[attr-defined]
    return cast(HtmxRequest, request)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a page with its own id, which can be updated in place."""

    html: str
    swap: str = "outerMorph"

    @property
    def print(self) -> str:
        """What is compared to decide whether to send it again: all but times, which the browser updates."""
        return _TIME_TEXT.sub("", self.html)


@dataclass(frozen=True, slots=True)
class Drawing:
    """All pieces of a live view. `order` lists those of steps, whose number may grow; `is_done` ends the view."""

    pieces: Mapping[str, Piece]
    order: tuple[str, ...] = ()
    is_done: bool = False
    say: str = ""
    is_personal: bool = False  # users with equal rights may see different pieces
    forms: tuple[str, ...] = ()  # references of the requests in it
    follow: Mapping[str, str] = field(default_factory=dict)  # what its live view is asked for

    @property
    def tag(self) -> str:
        text = "\0".join(f"{name}\0{piece.print}" for name, piece in self.pieces.items())
        return hashlib.sha256(text.encode()).hexdigest()[:20]


def page(
    request: HttpRequest,
    template: str,
    drawing: Drawing | None = None,
    *,
    topic: str = "",
    status: int = 200,
    **context: Any,
) -> HttpResponse:
    """Render a page. Its context has `pieces`, rendered by the same code as for the socket."""
    if drawing is not None:
        # Safe: each piece is the output of a template, which escapes values.
        safe = {name.replace("-", "_"): mark_safe(piece.html) for name, piece in drawing.pieces.items()}  # noqa: S308
        context["pieces"] = safe
        context["forms"] = drawing.forms
        context["steps"] = [safe[name.replace("-", "_")] for name in drawing.order]
    return render(request, template, {"topic": topic, **context}, status=status)


def more_piece(newer: int, address: str) -> Piece:
    """Render the number of new rows since the page was rendered, with a link to them."""
    return Piece(render_to_string("studio/frame/more.html", {"newer": newer, "address": address}))


def frame(pieces: Mapping[str, Piece]) -> str:
    """Return pieces as one message for htmx."""
    return "".join(partial(name, piece) for name, piece in pieces.items())


def partial(target: str, piece: Piece) -> str:
    return f'<hx-partial hx-target="#{escape(target)}" hx-swap="{piece.swap}">{piece.html}</hx-partial>'


def frame_of(drawing: Drawing) -> str:
    """Return a whole drawing as one response of partials."""
    loose = {name: piece for name, piece in drawing.pieces.items() if name not in set(drawing.order)}
    text = frame(loose)
    if drawing.order:
        steps = "".join(drawing.pieces[name].html for name in drawing.order)
        text += partial("steps", Piece(steps, "innerMorph"))
    return text


def flash(text: str, status: str) -> str:
    """Return a message above the page as a partial."""
    html = render_to_string("studio/frame/flash.html", {"text": text, "status": status})
    return partial("flash", Piece(html, "innerHTML"))
