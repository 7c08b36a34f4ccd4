"""The slow reconcile: the same pieces as over the socket, asked for by a page that may have missed some."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpResponse, HttpResponseNotModified

from studio.access import Verb
from studio.approvals_live import count_piece
from studio.htmx import HtmxRequest
from studio.live_views import UnknownViewError, view_of
from studio.pieces import frame_of
from studio.views.errors import bad_request
from studio.views.guard import guard


@guard(get=Verb.VIEW)
def live_frame(request: HtmxRequest) -> HttpResponse:
    """Answer with all pieces of a topic, or 304 when the page has them already (htmx's ptag)."""
    try:
        topic = view_of(request.GET)
    except UnknownViewError:
        return bad_request(request)
    drawing = topic.draw(request.user)
    drawing = replace(drawing, pieces={**drawing.pieces, **count_piece(request.user)})
    if request.htmx.ptag == drawing.tag:
        return HttpResponseNotModified()
    return HttpResponse(frame_of(drawing), headers={"HX-PTag": drawing.tag})
