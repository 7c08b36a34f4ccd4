"""The table of workflows."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from studio.access.permissions import Verb
from studio.frame.addresses import ignored
from studio.frame.guard import guard
from studio.frame.pieces import page
from studio.workflows.live import WorkflowsView


@guard(get=Verb.VIEW)
def workflows(request: HttpRequest) -> HttpResponse:
    return page(
        request,
        "studio/workflows/workflows.html",
        WorkflowsView().draw(request.user),
        topic="topic=workflows",
        ignored=ignored(request.GET, ()),
    )
