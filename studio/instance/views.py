"""The instance page, and the steps inside a folded step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse

from engine.models import Instance
from engine.status.snapshot import GenerationNotFoundError, snapshot
from studio.access.permissions import Verb, allowed
from studio.approvals.entry import Entry
from studio.forms.tokens import new_token
from studio.frame.addresses import cursor
from studio.frame.guard import guard
from studio.frame.pieces import Drawing, Piece, page
from studio.instance import deleted_instances, inner_steps
from studio.instance import queries as instance_queries
from studio.instance.live import draw_instance
from studio.instance.page import InstancePage, place_of
from studio.instance.steps.line import step_html
from studio.instance.tab import Tab
from studio.instance.tabs import ignored_of, tab_of


@guard(get=Verb.VIEW)
def instance(request: HttpRequest, name: str, id: str) -> HttpResponse:
    return show_instance(request, name, id)


def show_instance(
    request: HttpRequest,
    name: str,
    id: str,
    *,
    status: int = 200,
    typed: Entry | None = None,
    **context: object,
) -> HttpResponse:
    """Render the instance page, also after a refused action."""
    upto, generation = (cursor(request.GET.get(one, "")) for one in ("upto", "generation"))
    try:
        found = instance_queries.of(name, id, upto, generation)
    except Instance.DoesNotExist:
        return _gone(request, name, id)
    except GenerationNotFoundError:
        raise Http404 from None
    kind = str(context.get("event_type", next(iter(found.wanted_events), "")))
    about = next((one for one in found.declared_events if one.name == kind), None)
    place = found.place
    within = inner_steps.draw_opened(
        found.instance, inner_steps.opened(request.GET.get("open", "")), place=place
    )
    tab = tab_of(request.GET.get("tab", ""))
    drawing = draw_instance(found, request.user, tab=tab, given=request.GET.dict(), typed=typed)
    return page(
        request,
        "studio/instance/instance.html",
        replace(drawing, pieces={**drawing.pieces, **opened_steps(found, within)}),
        topic=_topic(found, upto, tab, drawing),
        status=status,
        **{
            "event_type": kind,
            "event_text": about.example if about else "",
            "payload_is_required": about is not None and about.is_required,
            "d": found,
            "instance": found.instance,
            "token": new_token(),
            "tab": tab,
            "ignored": ignored_of(request.GET, tab),
            "may_act": allowed(request.user, Verb.OPERATE, name),
            **context,
        },
    )


def _gone(request: HttpRequest, name: str, id: str) -> HttpResponse:
    """Answer 410 for a deleted instance and say who deleted it; else 404."""
    deleted = deleted_instances.of(name, id)
    if deleted is None:
        raise Http404
    return page(request, "studio/instance/gone.html", deleted=deleted, status=410)


def _topic(found: InstancePage, upto: int | None, tab: Tab, drawing: Drawing) -> str:
    """Return the topic of the newest generation; earlier ones no longer change."""
    if found.is_past:
        return ""
    given = {"upto": str(upto) if upto is not None else "", "tab": tab.name, **drawing.follow}
    rest = urlencode({name: value for name, value in given.items() if value})
    return f"topic=instance:{found.instance.key}" + (f"&{rest}" if rest else "")


def opened_steps(found: InstancePage, within: Mapping[int, str]) -> dict[str, Piece]:
    """Render the steps that the address opens, with their inner steps."""
    return {
        line.anchor: Piece(step_html(line, found.instance, inner=within[line.step.seq]))
        for line in found.lines
        if line.step.seq in within
    }


@guard(get=Verb.VIEW)
def within(request: HttpRequest, name: str, id: str, seq: int) -> HttpResponse:
    """Answer with a page of the steps inside a folded step."""
    instance = Instance.objects.defer("params", "output").filter(workflow=name, id=id).first()
    if instance is None:
        raise Http404
    try:
        snapped = snapshot(instance, cursor(request.GET.get("generation", "")), output_up_to=0)
    except GenerationNotFoundError:
        raise Http404 from None
    place = place_of(snapped.generations)
    found = inner_steps.read(snapped.instance, seq, cursor(request.GET.get("page", "")) or 1, place=place)
    if found is None:
        raise Http404
    return HttpResponse(inner_steps.html_of(instance, found))
