"""The list of workflows, and the page of one."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from engine.declare.registry import workflows as registry
from studio import lints, queries, rows, schema
from studio.access import Verb, allowed
from studio.filters import Filter
from studio.overviews import overviews
from studio.tokens import new_token
from studio.views.guard import guard
from studio.views.pages import page
from studio.workflows_live import WorkflowsView, WorkflowView

RECENT = 20


@guard(get=Verb.VIEW)
def workflows(request: HttpRequest) -> HttpResponse:
    return page(request, "pages/workflows.html", WorkflowsView().draw(request.user), topic="topic=workflows")


@guard(get=Verb.VIEW)
def workflow(request: HttpRequest, name: str) -> HttpResponse:
    (overview,) = overviews([name])
    if not overview.is_known and not overview.counts:
        raise Http404
    wanted = Filter(workflow=name)
    recent = queries.page_of(wanted).instances[:RECENT]
    shown = ",".join(str(instance.key) for instance in recent)
    return page(
        request,
        "pages/workflow.html",
        WorkflowView(name).draw(request.user),
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
