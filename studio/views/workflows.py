"""The list of workflows, and the page of one."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from engine.declare.registry import workflows as registry
from studio import lints, queries, rows, schema
from studio.access import Verb, allowed
from studio.filters import Filter
from studio.forms import new_token
from studio.live_views import LiveView, draw
from studio.views.guard import guard
from studio.views.pages import page

RECENT = 20


@guard(get=Verb.VIEW)
def workflows(request: HttpRequest) -> HttpResponse:
    return page(
        request, "pages/workflows.html", draw(LiveView("workflows"), request.user), topic="topic=workflows"
    )


@guard(get=Verb.VIEW)
def workflow(request: HttpRequest, name: str) -> HttpResponse:
    (overview,) = queries.overviews([name])
    if not overview.is_known and not overview.counts:
        raise Http404
    wanted = Filter(workflow=name)
    recent = queries.page_of(wanted).instances[:RECENT]
    shown = ",".join(str(instance.key) for instance in recent)
    return page(
        request,
        "pages/workflow.html",
        draw(LiveView("workflow", name=name), request.user),
        topic=f"topic=workflow:{name}&keys={shown}",
        overview=overview,
        wanted=wanted,
        rows=rows.rows_of(recent),
        definition=registry.get(name),
        token=new_token(),
        may_act=allowed(request.user, Verb.OPERATE, name),
        lints=lints.lines_of(name, has_run=bool(overview.counts)),
        fields=schema.fields(registry[name].params_schema()) if overview.is_known else [],
    )
