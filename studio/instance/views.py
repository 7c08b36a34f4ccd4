"""The instance page, the pane of a row, and the steps inside a folded step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from engine.models import Instance
from engine.status.snapshot import GenerationNotFoundError, Snapshot, snapshot
from studio.access.permissions import Verb, allowed
from studio.approvals.entry import Entry
from studio.forms.tokens import new_token
from studio.frame.addresses import cursor
from studio.frame.guard import guard
from studio.frame.pieces import Drawing, Piece, page
from studio.instance import deleted_instances, inner_steps
from studio.instance import pane as pane_of_page
from studio.instance import queries as instance_queries
from studio.instance.live import draw_instance
from studio.instance.page import InstancePage, place_of
from studio.instance.steps_tab import pane_row
from studio.instance.tab import Tab
from studio.instance.tabs import ignored_of, tab_of
from studio.instance.window import WINDOW, Window


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
    tab: Tab | None = None,
    **context: object,
) -> HttpResponse:
    """Render the instance page, also after a refused action. `tab` is by default the one that the address names."""
    window, generation = Window.of(request.GET), cursor(request.GET.get("generation", ""))
    try:
        found = instance_queries.of(name, id, window, generation)
        opens = request.GET.get("open", "")
        named = request.GET.get("step", "") or opens.split(",")[0].partition(".")[0]
        chosen = _chosen(found, named)
        if chosen.top and not any(line.step.seq == chosen.top for line in found.lines):
            window = Window(upto=chosen.top + WINDOW // 2)
            found = instance_queries.of(name, id, window, generation)
    except Instance.DoesNotExist:
        return _gone(request, name, id)
    except GenerationNotFoundError:
        raise Http404 from None
    kind = str(context.get("event_type", next(iter(found.wanted_events), "")))
    about = next((one for one in found.declared_events if one.name == kind), None)
    tab = tab or tab_of(request.GET.get("tab", ""))
    drawing = draw_instance(found, request.user, tab=tab, given=request.GET.dict(), typed=typed)
    panes = pane_of_page.opened(found, _in_page(found, chosen), opens) if not tab.name else {}
    return page(
        request,
        "studio/instance/instance.html",
        _with_panes(drawing, panes),
        topic=_topic(found, window, tab, drawing),
        status=status,
        **{
            "event_type": kind,
            "event_text": about.example if about else "",
            "payload_is_required": about is not None and about.is_required,
            "d": found,
            "instance": found.instance,
            "token": new_token(),
            "tab": tab,
            "panes_address": reverse("studio:pane-start", args=[name, id]).removesuffix("start/pane/"),
            "is_beside_only": not named and found.unfinished,
            "fixed_panes": {name: panes.get(name, "") for name in pane_of_page.FIXED},
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


def _topic(found: InstancePage, window: Window, tab: Tab, drawing: Drawing) -> str:
    """Return the topic of the newest generation; earlier ones no longer change."""
    if found.is_past:
        return ""
    given = {"tab": tab.name, **drawing.follow}
    rest = urlencode({name: value for name, value in given.items() if value})
    return "&".join(part for part in (f"topic=instance:{found.instance.key}", rest, window.query) if part)


def _chosen(found: InstancePage, text: str) -> pane_of_page.Choice:
    """Return the open row: the one that the address names, else the one to look at first."""
    chosen = pane_of_page.choice_of(found.instance, text) if text else None
    return chosen or pane_of_page.Choice(found.first_choice)


def _in_page(found: InstancePage, chosen: pane_of_page.Choice) -> str:
    """Return the row that is open: of a folded step, the one that it is in."""
    is_there = not chosen.top or any(str(line.step.seq) == chosen.name for line in found.lines)
    return chosen.name if is_there else str(chosen.top)


def _with_panes(drawing: Drawing, panes: Mapping[str, str]) -> Drawing:
    """Return a drawing with the panes of its steps."""
    rows = {f"p-{name}": Piece(pane_row(name, html)) for name, html in panes.items()}
    return replace(drawing, pieces={**drawing.pieces, **rows})


@guard(get=Verb.VIEW)
def pane(request: HttpRequest, name: str, id: str, seq: int) -> HttpResponse:
    """Answer with the pane of a step, or with nothing: an open pane asks again after a restart or a deletion."""
    try:
        snapped = _snapped(request, name, id)
    except Http404:
        return HttpResponse(status=204)
    line = pane_of_page.read(snapped.instance, seq, place=place_of(snapped.generations))
    if line is None:
        return HttpResponse(status=204)
    was_open = request.GET.get("steady", "") == "1"
    has_rows = seq in Window.of(request.GET).rows
    return HttpResponse(pane_of_page.html_of(line, snapped.instance, was_open=was_open, has_rows=has_rows))


@guard(get=Verb.VIEW)
def fixed_pane(request: HttpRequest, name: str, id: str, what: str) -> HttpResponse:
    """Answer with the pane of the first or the last row."""
    generation = cursor(request.GET.get("generation", ""))
    try:
        found = instance_queries.of(name, id, Window(upto=0), generation)
    except (Instance.DoesNotExist, GenerationNotFoundError):
        raise Http404 from None
    return HttpResponse(pane_of_page.fixed_html(found, what))


def _snapped(request: HttpRequest, name: str, id: str) -> Snapshot:
    """Read an instance in the generation that the address names."""
    instance = Instance.objects.defer("params", "output").filter(workflow=name, id=id).first()
    if instance is None:
        raise Http404
    try:
        return snapshot(instance, cursor(request.GET.get("generation", "")), output_up_to=0)
    except GenerationNotFoundError:
        raise Http404 from None


@guard(get=Verb.VIEW)
def within(request: HttpRequest, name: str, id: str, seq: int) -> HttpResponse:
    """Answer with a page of the steps inside a folded step."""
    snapped = _snapped(request, name, id)
    place = place_of(snapped.generations)
    found = inner_steps.read(snapped.instance, seq, cursor(request.GET.get("page", "")) or 1, place=place)
    if found is None:
        raise Http404
    return HttpResponse(inner_steps.html_of(snapped.instance, found))
