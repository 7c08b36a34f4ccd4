"""The wall screen: what everybody in a room should see, without params and results."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from studio.access.permissions import Verb
from studio.frame.addresses import ignored
from studio.frame.guard import guard
from studio.frame.pieces import page
from studio.tv.live import WallView


@guard(get=Verb.VIEW)
def tv(request: HttpRequest) -> HttpResponse:
    drawing = WallView().draw(request.user)
    return page(request, "studio/tv/tv.html", drawing, topic="topic=tv", ignored=ignored(request.GET, ()))
