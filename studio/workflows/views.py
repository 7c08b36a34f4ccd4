"""The table of workflows, and the page of one workflow."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from engine.declare.registry import workflows as registry
from engine.status.searching.searching import search
from engine.values.query.parsing import parse
from studio.access.permissions import Verb, allowed
from studio.forms import schema
from studio.forms.tokens import new_token
from studio.frame.addresses import cursor, ignored
from studio.frame.guard import guard
from studio.frame.pieces import Drawing, page
from studio.instances import queries
from studio.workflows import lints
from studio.workflows.code import code_page, diagram_pieces, lines_html
from studio.workflows.live import WorkflowsView, WorkflowView
from studio.workflows.queries import overviews

RECENT = 20


@guard(get=Verb.VIEW)
def workflows(request: HttpRequest) -> HttpResponse:
    return page(
        request,
        "studio/workflows/workflows.html",
        WorkflowsView().draw(request.user),
        topic="topic=workflows",
        ignored=ignored(request.GET, ()),
    )


@guard(get=Verb.VIEW)
def workflow(request: HttpRequest, name: str) -> HttpResponse:
    (overview,) = overviews([name])
    if not overview.is_known and not overview.counts:
        raise Http404
    recent = queries.rows_by_key(search(parse(f"workflow:{name}"), workflows=[name], limit=RECENT).keys)
    shown = ",".join(str(instance.key) for instance in recent)
    return page(
        request,
        "studio/workflows/workflow.html",
        WorkflowView(name).draw(request.user),
        topic=f"topic=workflow:{name}&keys={shown}",
        ignored=ignored(request.GET, ()),
        overview=overview,
        rows=queries.rows_of(recent),
        definition=registry.get(name),
        token=new_token(),
        may_act=allowed(request.user, Verb.OPERATE, name),
        lints=lints.lines_of(name, has_run=bool(overview.counts)),
        fields=schema.fields(registry[name].params_schema()) if overview.is_known else [],
    )


@guard(get=Verb.VIEW)
def code(request: HttpRequest, name: str) -> HttpResponse:
    """Answer with the drawing of the handler beside its code."""
    if name not in registry:
        raise Http404
    (overview,) = overviews([name], only_open=True)
    found = code_page(
        name,
        cursor(request.GET.get("from", "")) or 1,
        lints.lines_of(name, has_run=overview.last_at is not None),
    )
    handler = found.handler
    return page(
        request,
        "studio/workflows/code.html",
        Drawing({} if handler is None else diagram_pieces(handler, found.entries)),
        ignored=ignored(request.GET, ("from",)),
        overview=overview,
        code=found,
        code_lines=lines_html(found),
    )
