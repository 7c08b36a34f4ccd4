"""Pause, resume and abort a bulk job, and retry what failed in it."""

from __future__ import annotations

from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from engine import bulk
from engine.models import BulkJob
from engine.steer.audit import MAX_REASON
from engine.values.errors import BulkJobNotFoundError, RepriseError
from studio.access.denied_audit import Subject
from studio.access.permissions import Verb, require
from studio.bulk import queries
from studio.bulk.views import show_job
from studio.frame.guard import Names, guard
from studio.frame.notes import note


def subject_of(names: Names) -> Subject:
    """Return the subject of a job's address: it belongs to no workflow."""
    is_there = BulkJob.objects.filter(id=names["id"]).exists()
    return Subject("", data={"bulk": names["id"]}) if is_there else Subject(None)


@guard(post=Verb.OPERATE, action="bulk-pause", about=subject_of)
def pause(request: HttpRequest, id: str) -> HttpResponse:
    return _steer(request, id, bulk.pause, "Paused. The batch that runs may still end.")


@guard(post=Verb.OPERATE, action="bulk-resume", about=subject_of)
def resume(request: HttpRequest, id: str) -> HttpResponse:
    return _steer(request, id, bulk.resume, "Resumed.")


@guard(post=Verb.OPERATE, action="bulk-abort", about=subject_of)
def abort(request: HttpRequest, id: str) -> HttpResponse:
    """Abort it. A reason is required, for the audit trail."""
    if not reason_of(request):
        return show_job(request, id, status=422, refused="Not aborted. Enter a reason.", dialog="abort")
    return _steer(request, id, bulk.abort, "Aborted. What is done stays done.")


@guard(post=Verb.OPERATE, action="bulk-retry-failed", about=subject_of)
def retry_failed(request: HttpRequest, id: str) -> HttpResponse:
    return _steer(request, id, bulk.retry_failed, "The failed ones are done again.")


def reason_of(request: HttpRequest) -> str:
    """Return the reason that was typed."""
    return request.POST.get("reason", "").replace("\0", "").strip()[:MAX_REASON]


def _steer(request: HttpRequest, id: str, act: Callable[..., bulk.Job], said: str) -> HttpResponse:
    before = queries.find(id, request.user)
    if before is None:
        raise Http404
    for name in queries.workflows_of(before.key):
        require(request.user, Verb.OPERATE, name)
    try:
        after = act(id, by=request.user, reason=reason_of(request))
    except BulkJobNotFoundError:
        raise Http404 from None
    except RepriseError as error:
        return show_job(request, id, status=422, refused=str(error))
    if (after.status, after.failed) == (before.job.status, before.job.failed):
        text = f"It is {after.status}. Nothing was changed."
        return show_job(request, id, status=409, refused=text)
    note(request, said)
    return HttpResponseRedirect(reverse("studio:bulk-job", args=[id]))
