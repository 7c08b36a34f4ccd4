"""The slow reconcile: a page polls the same pieces as over the socket, since it may have missed some.

And the address of the socket.
"""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpResponse, HttpResponseNotModified

from studio.access.permissions import Verb
from studio.frame.errors import bad_request
from studio.frame.guard import guard, public
from studio.frame.pieces import HtmxRequest, frame_of
from studio.live.counts import count_pieces
from studio.live.topics import UnknownViewError, view_of


@guard(get=Verb.VIEW)
def live_frame(request: HtmxRequest) -> HttpResponse:
    """Answer with all pieces of a topic, or 304 if the page has them already (htmx's ptag)."""
    try:
        topic = view_of(request.GET)
    except UnknownViewError:
        return bad_request(request)
    drawing = topic.draw(request.user)
    drawing = replace(drawing, pieces={**drawing.pieces, **count_pieces(request.user)})
    if request.htmx.ptag == drawing.tag:
        return HttpResponseNotModified()
    return HttpResponse(frame_of(drawing), headers={"HX-PTag": drawing.tag})


@public("GET")
def socket_address(request: HtmxRequest) -> HttpResponse:
    """Answer 426 to a request without the upgrade to a WebSocket: `with_studio` serves the others."""
    return HttpResponse(
        "This address is for WebSockets. If the Studio says that it is offline, the server in front of it does not "
        "pass on the upgrade.\n",
        content_type="text/plain; charset=utf-8",
        status=426,
        headers={"Upgrade": "websocket"} if hasattr(request, "scope") else {},  # WSGI forbids the header
    )
