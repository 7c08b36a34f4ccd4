"""The page of workers and queues."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from studio.access.permissions import Verb
from studio.frame.addresses import ignored
from studio.frame.guard import guard
from studio.frame.pieces import page
from studio.workers.live import WorkersView


@guard(get=Verb.VIEW)
def workers(request: HttpRequest) -> HttpResponse:
    return page(
        request,
        "studio/workers/workers.html",
        WorkersView().draw(request.user),
        topic="topic=workers",
        ignored=ignored(request.GET, ()),
    )
