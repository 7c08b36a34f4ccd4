"""The page of one workflow, with its tabs, and the page of its code."""

from __future__ import annotations

from typing import Any

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
from studio.workflow import code_versions
from studio.workflow.live import WorkflowView, head_pieces
from studio.workflow.tabs import BY_NAME, TABS, tab_of
from studio.workflows import lints
from studio.workflows.code import diagram_pieces, lines_html, page_of
from studio.workflows.queries import Overview, overviews

RECENT = 20


@guard(get=Verb.VIEW)
def workflow(request: HttpRequest, name: str) -> HttpResponse:
    (overview,) = overviews([name])
    if not overview.is_known and not overview.counts:
        raise Http404
    tab = tab_of(request.GET.get("tab", ""))
    understood = ("tab",) if request.GET.get("tab", "") in BY_NAME else ()
    shown = _overview(overview) if tab is TABS[0] else {}
    keys = ",".join(str(row.instance.key) for row in shown.get("rows", ()))
    return page(
        request,
        "studio/workflow/workflow.html",
        WorkflowView(name, tab=tab.name).draw(request.user),
        topic=f"topic=workflow:{name}" + (f"&tab={tab.name}" if tab.name else f"&keys={keys}"),
        ignored=ignored(request.GET, understood),
        overview=overview,
        tab=tab,
        token=new_token(),
        may_act=allowed(request.user, Verb.OPERATE, name),
        **shown,
    )


def _overview(overview: Overview) -> dict[str, Any]:
    """Return what only the first tab shows."""
    name = overview.name
    recent = queries.rows_by_key(search(parse(f"workflow:{name}"), workflows=[name], limit=RECENT).keys)
    return {
        "rows": queries.rows_of(recent),
        "definition": registry.get(name),
        "lints": lints.lines_of(name, has_run=bool(overview.counts)),
        "fields": schema.fields(registry[name].params_schema()) if overview.is_known else [],
    }


@guard(get=Verb.VIEW)
def code(request: HttpRequest, name: str) -> HttpResponse:
    """Answer with the drawing of the handler beside its code; for another version, with that or what differs."""
    asked = code_versions.asked_of(name, request.GET)
    if name not in registry and not asked.version.source:
        raise Http404
    (overview,) = overviews([name], only_open=True)
    first = cursor(request.GET.get("from", "")) or 1
    findings = lints.lines_of(name, has_run=overview.last_at is not None) if asked.is_now else []
    found = page_of(asked.version.source, first, findings, version="" if asked.is_now else asked.version.code)
    handler = found.handler
    drawn = {}
    if handler is not None and asked.against is None:
        drawn = diagram_pieces(handler, found.entries, is_listed=bool(request.GET.get("list")))
    return page(
        request,
        "studio/workflow/code.html",
        Drawing({**head_pieces(overview, request.user), **drawn}),
        ignored=ignored(request.GET, asked.understood),
        overview=overview,
        code=found,
        code_lines=lines_html(found),
        asked=asked,
    )
