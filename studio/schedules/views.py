"""The page of schedules, and pausing, resuming and running them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from engine.models import ScheduleRow
from engine.status.sentences.bidi import isolated
from engine.steer import schedules
from engine.values.errors import RepriseError, ScheduleNotFoundError
from studio.access.denied_audit import Subject
from studio.access.permissions import Verb
from studio.forms.tokens import new_token, token_of
from studio.frame.addresses import ignored
from studio.frame.guard import Names, guard
from studio.frame.notes import note
from studio.frame.pieces import page
from studio.schedules.live import SchedulesView, seen_by


def subject_of(names: Names) -> Subject:
    """Return the subject of a schedule's address."""
    row = ScheduleRow.objects.filter(key=names["key"]).first()
    return Subject(row.workflow, data={"schedule": row.name}) if row is not None else Subject(None)


@guard(get=Verb.VIEW)
def timetable(request: HttpRequest) -> HttpResponse:
    return _page(request)


@guard(post=Verb.OPERATE, action="schedule-pause", about=subject_of)
def pause(request: HttpRequest, key: int) -> HttpResponse:
    row = _row(key)
    if row.paused_at is not None:
        return _refused(request, f"{row.name} is already paused{_by(row)}.")
    _found(schedules.pause, row, request)
    return _done(request, f"Paused {row.name}. It starts no planned runs until it is resumed.")


@guard(post=Verb.OPERATE, action="schedule-resume", about=subject_of)
def resume(request: HttpRequest, key: int) -> HttpResponse:
    row = _row(key)
    if row.paused_at is None:
        return _refused(request, f"{row.name} is not paused.")
    _found(schedules.resume, row, request)
    return _done(request, f"Resumed {row.name}. It continues with its next planned run.")


@guard(post=Verb.OPERATE, action="schedule-run", about=subject_of)
def run(request: HttpRequest, key: int) -> HttpResponse:
    """Start an instance now. The form's token is its id, so a double click starts one."""
    row = _row(key)
    chosen = f"{token_of(request.POST.get('token', ''))}-{row.key}"
    try:
        instance = schedules.run_now(row, id=chosen, by=request.user)
    except ScheduleNotFoundError:
        raise Http404 from None
    except RepriseError as error:
        return _refused(request, str(error))
    note(request, f"Started this instance from schedule {row.name}.")
    return HttpResponseRedirect(instance.get_absolute_url())


def _row(key: int) -> ScheduleRow:
    row = ScheduleRow.objects.filter(key=key).first()
    if row is None:
        raise Http404
    return row


def _found(act: Any, row: ScheduleRow, request: HttpRequest) -> None:
    try:
        act(row, by=request.user)
    except ScheduleNotFoundError:
        raise Http404 from None


def _by(row: ScheduleRow) -> str:
    return f" by {isolated(row.paused_by)}" if row.paused_by else ""


def _done(request: HttpRequest, text: str) -> HttpResponse:
    note(request, text)
    return HttpResponseRedirect(reverse("studio:schedules"))


def _refused(request: HttpRequest, text: str) -> HttpResponse:
    return _page(request, status=409, refused=text)


def _page(request: HttpRequest, *, status: int = 200, refused: str = "") -> HttpResponse:
    view = SchedulesView.asked(request.GET)
    seen = sorted({row.workflow for row in seen_by(request.user)}) if view.week else []
    return page(
        request,
        "studio/schedules/schedules.html",
        view.draw(request.user),
        topic=view.query,
        status=status,
        refused=refused,
        ignored=ignored(request.GET, _understood(view, seen)),
        token=new_token(),
        asked=view.week,
        seen=seen,
        hours=[f"{hour:02}" for hour in range(24)],
    )


def _understood(view: SchedulesView, seen: Sequence[str]) -> set[str]:
    if view.week is None:
        return set()
    found = set(view.week.parameters)
    return found if view.week.workflow in seen else found - {"workflow"}
