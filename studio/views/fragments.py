"""The slow reconcile: the same pieces as over the socket, asked for by a page that may have missed some."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpResponse, HttpResponseNotModified
from django.template.loader import render_to_string

from studio import live_views, pieces
from studio.access import Verb
from studio.htmx import HtmxRequest
from studio.views.errors import bad_request
from studio.views.guard import guard


@guard(get=Verb.VIEW)
def live_frame(request: HtmxRequest) -> HttpResponse:
    """Answer with all pieces of a topic, or 304 when the page has them already (htmx's ptag)."""
    try:
        topic = live_views.LiveView.of(request.GET)
    except live_views.UnknownViewError:
        return bad_request(request)
    drawing = live_views.draw(topic, request.user)
    drawing = replace(drawing, pieces={**drawing.pieces, **live_views.count_piece(request.user)})
    if request.htmx.ptag == drawing.tag:
        return HttpResponseNotModified()
    return HttpResponse(frame_of(drawing), headers={"HX-PTag": drawing.tag})


def frame_of(drawing: pieces.Drawing) -> str:
    """Write a whole drawing as one answer of partials."""
    loose = {name: piece for name, piece in drawing.pieces.items() if name not in set(drawing.order)}
    text = pieces.frame(loose)
    if drawing.order:
        steps = "".join(drawing.pieces[name].html for name in drawing.order)
        text += pieces.partial("steps", pieces.Piece(steps, "innerMorph"))
    return text


def flash(text: str, status: str) -> str:
    """Write the message above the page as a partial."""
    html = render_to_string("partials/flash.html", {"text": text, "status": status})
    return pieces.partial("flash", pieces.Piece(html, "innerHTML"))
