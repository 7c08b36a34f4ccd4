"""Pause workflows, and resume them or release some of their instances, after a page that says what that does."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from engine.steer import pauses
from engine.values.errors import RepriseError
from studio.access.permissions import Verb
from studio.frame import pieces
from studio.frame.guard import guard
from studio.frame.notes import note
from studio.workflows.pause_form import PauseForm, ResumeForm
from studio.workflows.pause_request import PauseRequest, require

# A POST needs OPERATE for each workflow that the query names, which the guard cannot see: `require` checks that.


@guard(get=Verb.OPERATE, post=Verb.VIEW)
def pause_workflows(request: HttpRequest) -> HttpResponse:
    """Pause each workflow of the query that is not paused, all or none. A reason is required."""
    asked = PauseRequest.of(request)
    require(request, asked.names, pauses.PAUSE)
    form = PauseForm.of(request.POST)
    if request.method != "POST" or asked.problem:
        return _pause_page(request, asked, PauseForm(), status=404 if asked.problem else 200)
    if not asked.pauses.active:
        return _pause_page(request, asked, form, status=409, refused="Already paused. Nothing was changed.")
    if form.problem:
        return _pause_page(request, asked, form, status=422, refused=form.problem)
    try:
        with transaction.atomic():
            for name in sorted(asked.pauses.active):  # two people must not deadlock
                pauses.pause(name, by=request.user, reason=form.reason)
    except RepriseError as error:
        return _pause_page(request, asked, form, status=422, refused=str(error))
    note(request, " ".join([f"Paused {_listed(asked.pauses.active)}.", *_already_paused(asked)]))
    return HttpResponseRedirect(asked.back)


@guard(get=Verb.OPERATE, post=Verb.VIEW)
def resume_workflows(request: HttpRequest) -> HttpResponse:
    """Resume each paused workflow of the query, or release some instances of each, all or none."""
    asked = PauseRequest.of(request)
    require(request, asked.names, pauses.RESUME)
    form = ResumeForm.of(request.POST)
    if request.method != "POST" or asked.problem:
        return _resume_page(request, asked, ResumeForm(), status=404 if asked.problem else 200)
    if not asked.pauses.paused:
        return _resume_page(
            request, asked, form, status=409, refused="Not paused any more. Nothing was changed."
        )
    if form.problem:
        return _resume_page(request, asked, form, status=422, refused=form.problem)
    try:
        with transaction.atomic():
            done = [
                pauses.resume(one.name, count=form.released, by=request.user, reason=form.reason)
                for one in asked.pauses.paused  # by name: two people must not deadlock
            ]
    except RepriseError as error:
        return _resume_page(request, asked, form, status=422, refused=str(error))
    note(request, " ".join(_said(one, is_some=form.released is not None) for one in done))
    return HttpResponseRedirect(asked.back)


def _pause_page(
    request: HttpRequest, asked: PauseRequest, form: PauseForm, *, status: int, refused: str = ""
) -> HttpResponse:
    return _page(request, "studio/workflows/pause.html", asked, form, status=status, refused=refused)


def _resume_page(
    request: HttpRequest, asked: PauseRequest, form: ResumeForm, *, status: int, refused: str = ""
) -> HttpResponse:
    return _page(request, "studio/workflows/resume.html", asked, form, status=status, refused=refused)


def _page(
    request: HttpRequest,
    template: str,
    asked: PauseRequest,
    form: PauseForm | ResumeForm,
    *,
    status: int,
    refused: str,
) -> HttpResponse:
    return pieces.page(
        request, template, status=status, asked=asked, form=form, refused=refused or asked.problem
    )


def _already_paused(asked: PauseRequest) -> list[str]:
    names = [one.name for one in asked.pauses.paused]
    return [f"Already paused: {_listed(names)}."] if names else []


def _said(done: pauses.Resumed, *, is_some: bool) -> str:
    if is_some and done.is_paused:
        stay = f"{done.held:,} {'is' if done.held == 1 else 'are'} still held"
        return f"Released {done.released:,} of {done.workflow}; {stay}."
    if is_some:
        return f"{done.workflow} is not paused any more."
    held = f": {done.released:,} held instance{'s' * (done.released != 1)} may go on" if done.released else ""
    return f"Resumed {done.workflow}{held}."


def _listed(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
