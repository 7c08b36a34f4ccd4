"""The inbox of requests, and the answer to one: the first counts, the second is told. A GET never decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import reverse

from engine.models import Instance
from engine.steer import requests
from engine.values.errors import (
    InstanceFinishedError,
    InvalidParamsError,
    RepriseError,
    RequestAnsweredError,
    RequestClosedError,
)
from studio import controls, denied_audit, inbox, live_views, pieces
from studio.access import Verb, allowed
from studio.controls import Problem
from studio.htmx import HtmxRequest
from studio.inbox import Entry
from studio.views.errors import forbidden
from studio.views.fragments import flash, frame_of
from studio.views.guard import guard
from studio.views.instance import show_instance
from studio.views.pages import page


@guard(get=Verb.VIEW)
def approvals(request: HtmxRequest) -> HttpResponse:
    chosen = request.GET.get("r", "")
    return _inbox(request, request.GET.get("box", ""), chosen)


@guard(post=Verb.VIEW, takes_payload=True)
def answer(request: HtmxRequest, name: str, id: str, seq: int) -> HttpResponse:
    entry = _entry(request, name, id, seq)
    if entry is None and allowed(request.user, Verb.APPROVE, name):
        raise Http404
    if entry is None or not entry.may_answer:
        return _denied(request, entry)
    checked = controls.read(entry.control, request.POST.dict(), entry.asked.schema)
    if not checked.is_good:
        return _wrong(request, entry, checked.problems)
    try:
        _give(request, entry, checked.value)
    except InvalidParamsError as error:
        return _wrong(request, entry, controls.placed(entry.control, error.errors))
    except RequestAnsweredError as error:
        if not _is_own(entry, error, checked.value, request.user):
            return _late(request, entry, _who_was_first(error))
    except (RequestClosedError, InstanceFinishedError) as error:
        return _late(request, entry, str(error))
    except RepriseError as error:
        return _wrong(request, entry, [Problem(controls.ROOT, str(error))])
    return _done(request, entry)


def _entry(request: HtmxRequest, name: str, id: str, seq: int) -> Entry | None:
    instance = Instance.objects.filter(workflow=name, id=id).only("key", "generation").first()
    if instance is None:
        raise Http404
    generation = request.POST.get("generation", "")
    return inbox.entry_of(f"{instance.key}-{generation or instance.generation}-{seq}", request.user)


def _give(request: HtmxRequest, entry: Entry, value: Any) -> None:
    if entry.step.generation != entry.instance.generation:
        raise RequestClosedError(entry.step.name, "the instance was restarted since")
    requests.answer(entry.instance, entry.step.seq, value, by=request.user, comment=_comment(request))


def _comment(request: HtmxRequest) -> str:
    return request.POST.get("comment", "").replace("\0", "").strip()[: requests.MAX_COMMENT]


def _is_own(entry: Entry, error: RequestAnsweredError, value: Any, user: Any) -> bool:
    """Tell whether it is the same person's same answer: a double click, or a form sent again."""
    event = requests.answer_to(entry.step)
    is_same = event is not None and requests.is_same_answer(event, value)
    return error.answered_by == user.get_username() and is_same


def _who_was_first(error: RequestAnsweredError) -> str:
    said = f": “{error.comment}”" if error.comment else ""
    when = f"{error.answered_at:%H:%M:%S} UTC"
    return f"{error.answered_by} already answered at {when}{said}. Your answer was not sent."


def _denied(request: HtmxRequest, entry: Entry | None) -> HttpResponse:
    """Refuse somebody who was not asked, and leave a row in the audit log."""
    if entry is None:
        return forbidden(request, Verb.APPROVE)
    data = {"request": entry.step.name, "seq": entry.step.seq}
    denied_audit.record_for_instance(requests.ANSWER, entry.instance, request.user, data=data)
    if not entry.asked.assignees:
        return forbidden(request, Verb.APPROVE)
    return forbidden(request, None, needs=" or ".join(who for who, _ in entry.who))


def _done(request: HtmxRequest, entry: Entry) -> HttpResponse:
    text = f"Answer sent: {entry.title}"
    if request.htmx:
        return HttpResponse(flash(text, "complete") + _now(request, entry))
    messages.success(request, text)
    return HttpResponseRedirect(_address(request, entry))


def _late(request: HtmxRequest, entry: Entry, text: str) -> HttpResponse:
    """Say who was first, over the page as it is by now."""
    if request.htmx:
        return HttpResponse(flash(text, "errored") + _now(request, entry), status=409)
    if _place(request):
        return _inbox(request, _place(request), entry.ref, status=409, refused=text)
    return show_instance(request, entry.instance.workflow, entry.instance.id, status=409, refused=text)


def _wrong(request: HtmxRequest, entry: Entry, problems: Any) -> HttpResponse:
    """Put the form back with what was typed, and what is wrong at its place."""
    given = request.POST.dict()
    control = controls.filled(entry.control, given, problems)
    typed = replace(entry, control=control, problems=tuple(problems), comment=given.get("comment", ""))
    if request.htmx:
        html = render_to_string("partials/ask.html", {"entry": typed, "place": _place(request)})
        # Not morphed: a form is left alone by that.
        return HttpResponse(pieces.partial(f"ask-{entry.ref}", pieces.Piece(html, "outerHTML")), status=422)
    if _place(request):
        return _inbox(request, _place(request), entry.ref, status=422, typed=typed)
    return show_instance(request, entry.instance.workflow, entry.instance.id, status=422, typed=typed)


def _inbox(
    request: HtmxRequest,
    name: str,
    chosen: str,
    *,
    status: int = 200,
    typed: Entry | None = None,
    refused: str = "",
) -> HttpResponse:
    name = name if name in inbox.BOXES else inbox.BOXES[0]
    box = inbox.box_of(name, request.user)
    shown = typed or (inbox.entry_of(chosen, request.user) if chosen else next(iter(box.entries), None))
    return page(
        request,
        "pages/approvals.html",
        live_views.draw_approvals(box, shown, request.user),
        topic=urlencode({"topic": "approvals", "box": name, "r": shown.ref if shown else ""}),
        status=status,
        is_chosen=bool(chosen) and shown is not None,
        back=f"{reverse('approvals')}?box={name}",
        refused=refused,
    )


def _place(request: HtmxRequest) -> str:
    """Tell the box whose page the form stands on; empty for the page of the instance."""
    place = request.POST.get("place", "")
    return place if place in inbox.BOXES else ""


def _address(request: HtmxRequest, entry: Entry) -> str:
    if not _place(request):
        return entry.instance.get_absolute_url()
    return f"{reverse('approvals')}?{urlencode({'box': _place(request), 'r': entry.ref})}"


def _now(request: HtmxRequest, entry: Entry) -> str:
    topic = live_views.LiveView("instance", key=entry.instance.key)
    if _place(request):
        topic = live_views.LiveView("approvals", box=_place(request), ref=entry.ref)
    drawing = live_views.draw(topic, request.user)
    return frame_of(replace(drawing, pieces={**drawing.pieces, **live_views.count_piece(request.user)}))
