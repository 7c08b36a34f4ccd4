"""Answers to requests, from the inbox or the instance page. The first counts; later ones are told who answered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from engine.models import Instance
from engine.status.sentences.bidi import isolated
from engine.steer import requests
from engine.steer.audit import shortened
from engine.values.errors import (
    InstanceFinishedError,
    InvalidParamsError,
    RepriseError,
    RequestAnsweredError,
    RequestClosedError,
)
from studio.access import denied_audit
from studio.access.permissions import Verb, allowed
from studio.approvals import answer_form
from studio.approvals import queries as inbox
from studio.approvals.controls import ROOT
from studio.approvals.entry import Entry
from studio.approvals.live import ApprovalsView, count_piece
from studio.approvals.views import show_inbox
from studio.display.rendering import render_to_string
from studio.forms.checked import Problem
from studio.frame import pieces
from studio.frame.errors import forbidden
from studio.frame.guard import guard
from studio.frame.live_view import LiveView
from studio.frame.notes import note
from studio.frame.pieces import HtmxRequest, flash, frame_of
from studio.instance.live import InstanceView
from studio.instance.views import show_instance


@guard(post=Verb.VIEW, takes_payload=True)
def answer(request: HtmxRequest, name: str, id: str, seq: int) -> HttpResponse:
    entry = _entry(request, name, id, seq)
    if entry is None and allowed(request.user, Verb.APPROVE, name):
        raise Http404
    if entry is None or not entry.may_answer:
        return _denied(request, entry)
    checked = answer_form.read(entry.control, request.POST.dict(), entry.asked.schema)
    if not checked.is_good:
        return _wrong(request, entry, checked.problems)
    try:
        _give(request, entry, checked.value)
    except InvalidParamsError as error:
        return _wrong(request, entry, answer_form.placed(entry.control, error.errors))
    except RequestAnsweredError as error:
        if not _is_own(entry, error, checked.value, request.user):
            return _late(request, entry, _who_was_first(error))
    except (RequestClosedError, InstanceFinishedError) as error:
        return _late(request, entry, str(error))
    except RepriseError as error:
        return _wrong(request, entry, [Problem(ROOT, str(error))])
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
    """Return whether it is the same answer by the same user: a double click, or a form sent again."""
    event = requests.answer_to(entry.step)
    is_same = event is not None and requests.is_same_answer(event, value)
    return error.answered_by == shortened(user.get_username()) and is_same


def _who_was_first(error: RequestAnsweredError) -> str:
    said = f": “{error.comment}”" if error.comment else ""
    when = f"{error.answered_at:%H:%M:%S} UTC"
    return f"{isolated(error.answered_by)} already answered at {when}{said}. Your answer was not sent."


def _denied(request: HtmxRequest, entry: Entry | None) -> HttpResponse:
    """Refuse a user who was not asked, and record it in the audit trail."""
    if entry is None:
        return forbidden(request, Verb.APPROVE)
    data = {"request": entry.step.name, "seq": entry.step.seq}
    denied_audit.record_for_instance(requests.ANSWER, entry.instance, request.user, data=data)
    if not entry.asked.assignees:
        return forbidden(request, Verb.APPROVE)
    return forbidden(request, None, needs=" or ".join(who for who, _ in entry.who))


def _done(request: HtmxRequest, entry: Entry) -> HttpResponse:
    text = f"Answer sent: {isolated(entry.title)}"
    if request.htmx:
        return HttpResponse(flash(text, "complete") + _now(request, entry))
    note(request, text)
    return HttpResponseRedirect(_address(request, entry))


def _late(request: HtmxRequest, entry: Entry, text: str) -> HttpResponse:
    """Report who answered first, on the current page."""
    if request.htmx:
        return HttpResponse(flash(text, "errored") + _now(request, entry), status=409)
    if _place(request):
        return show_inbox(request, _place(request), entry.ref, status=409, refused=text)
    return show_instance(request, entry.instance.workflow, entry.instance.id, status=409, refused=text)


def _wrong(request: HtmxRequest, entry: Entry, problems: Any) -> HttpResponse:
    """Show the form again with what was typed, and its problems in place."""
    given = request.POST.dict()
    control = answer_form.filled(entry.control, given, problems)
    typed = replace(entry, filled=control, problems=tuple(problems), comment=given.get("comment", ""))
    if request.htmx:
        html = render_to_string("studio/approvals/ask.html", {"entry": typed, "place": _place(request)})
        # Not morphed: morphing keeps forms unchanged.
        return HttpResponse(pieces.partial(f"ask-{entry.ref}", pieces.Piece(html, "outerHTML")), status=422)
    if _place(request):
        return show_inbox(request, _place(request), entry.ref, status=422, typed=typed)
    return show_instance(request, entry.instance.workflow, entry.instance.id, status=422, typed=typed)


def _place(request: HtmxRequest) -> str:
    """Return the box that the form was sent from; empty for the instance page."""
    place = request.POST.get("place", "")
    return place if place in inbox.BOXES else ""


def _address(request: HtmxRequest, entry: Entry) -> str:
    if not _place(request):
        return entry.instance.get_absolute_url()
    return f"{reverse('studio:approvals')}?{urlencode({'box': _place(request), 'r': entry.ref})}"


def _now(request: HtmxRequest, entry: Entry) -> str:
    view: LiveView = InstanceView(entry.instance.key)
    if _place(request):
        view = ApprovalsView(_place(request), entry.ref)
    drawing = view.draw(request.user)
    return frame_of(replace(drawing, pieces={**drawing.pieces, **count_piece(request.user)}))
