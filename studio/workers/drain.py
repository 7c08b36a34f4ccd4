"""Drain a worker or a cluster, after a page that says what that does, and resume it."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from engine.models import Worker
from engine.status.search import workflow_names
from engine.status.sentences.bidi import isolated
from engine.steer import workers
from engine.values.errors import RepriseError, WorkerNotFoundError
from studio.access.denied_audit import Subject
from studio.access.permissions import Verb, visible
from studio.frame.guard import Names, guard
from studio.frame.notes import note
from studio.frame.pieces import page
from studio.workers.queries import left_alone

SHOWN = 5  # workflows that would have no worker


def subject_of(names: Names) -> Subject:
    """Return the subject of a worker's address: it belongs to no workflow."""
    row = Worker.objects.filter(key=names["key"]).first()
    return Subject("", data={"worker": row.name}) if row is not None else Subject(None)


@guard(get=Verb.ADMINISTER, post=Verb.ADMINISTER, action="worker-drain", about=subject_of)
def drain(request: HttpRequest, key: int) -> HttpResponse:
    row = _row(key)
    if request.method != "POST":
        return _page(request, row)
    reason = request.POST.get("reason", "")
    if row.drained_at is not None:
        by = f" by {isolated(row.drained_by)}" if row.drained_by else ""
        return _page(request, row, refused=f"{isolated(row.name)} is already draining{by}.", reason=reason)
    try:
        done = workers.drain(row.name, by=request.user, reason=reason)
    except WorkerNotFoundError:
        raise Http404 from None
    except RepriseError as error:
        return _page(request, row, refused=str(error), reason=reason)
    return _done(
        request,
        f"Draining {isolated(row.name)}: it finishes what it runs and begins nothing.",
        *done.warnings,
    )


@guard(post=Verb.ADMINISTER, action="worker-resume", about=subject_of)
def resume(request: HttpRequest, key: int) -> HttpResponse:
    row = _row(key)
    try:
        done = workers.resume(row.name, by=request.user)
    except WorkerNotFoundError:
        raise Http404 from None
    return _done(request, f"Resumed {isolated(row.name)}.", *done.warnings)


def _row(key: int) -> Worker:
    row = Worker.objects.filter(key=key).first()
    if row is None:
        raise Http404
    return row


def _done(request: HttpRequest, *texts: str) -> HttpResponse:
    note(request, " ".join(texts))
    return HttpResponseRedirect(reverse("studio:workers"))


def _page(request: HttpRequest, row: Worker, *, refused: str = "", reason: str = "") -> HttpResponse:
    alone = left_alone(row, frozenset(visible(request.user, workflow_names())))
    return page(
        request,
        "studio/workers/drain.html",
        status=409 if refused else 200,
        worker=row,
        alone=alone[:SHOWN],
        more=max(len(alone) - SHOWN, 0),
        refused=refused,
        reason=reason,
    )
