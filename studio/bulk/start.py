"""The dialog that starts a bulk job: a page of its own, or a sheet over the page from which it was opened."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from engine import bulk
from engine.bulk import Job
from engine.models import BulkJob
from engine.values.errors import BulkJobExistsError, RepriseError
from studio.access.denied_audit import Subject
from studio.access.permissions import Verb
from studio.bulk.asked import Asked, operable
from studio.bulk.found import CONFIRMED_ABOVE, Found, look
from studio.bulk.start_form import StartForm
from studio.display.rendering import render
from studio.frame.guard import Names, guard
from studio.frame.patience import TooSlowError, patience
from studio.frame.pieces import HtmxRequest, page

PATIENCE_S = 20
TOO_SLOW = "This search takes too long. Nothing was started. Narrow it, for example to one workflow."
NOTHING_CHOSEN = "Nothing is chosen. Tick instances in the list, or search for them."


class StaleError(Exception):
    """The instances have changed since the page said how many there are."""


def subject_of(names: Names) -> Subject:
    """Return the subject of a job that is not there yet: it belongs to no workflow."""
    return Subject("", data={"bulk": ""})


@guard(get=Verb.OPERATE, post=Verb.OPERATE, action="bulk-start", about=subject_of)
def new(request: HtmxRequest) -> HttpResponse:
    """Show what a job would do now. Start it if it is this dialog that was sent."""
    asked = Asked.of(request)
    if request.method != "POST" or "token" not in request.POST:
        return _show(request, asked, StartForm.new())
    form = StartForm.of(request.POST)
    if BulkJob.objects.filter(id=form.token).exists():
        return _started(request, form.token)
    if asked.is_empty or form.problem:
        return _show(request, asked, form, refused=form.problem)
    if form.said > CONFIRMED_ABOVE and not form.confirms(form.said):
        return _show(request, asked, form, refused=f"Not started. Type {form.said} to go on.")
    try:
        return _started(request, _start(request, asked, form).id)
    except StaleError as error:
        return _show(request, asked, form, refused=str(error), status=409)
    except TooSlowError:
        return _show(request, asked, form, refused=TOO_SLOW)
    except RepriseError as error:
        return _show(request, asked, form, refused=str(error))


def _start(request: HtmxRequest, asked: Asked, form: StartForm) -> Job:
    """Start the job, unless it would be about more instances than the page had said. Raises StaleError."""
    with patience(PATIENCE_S), transaction.atomic():
        try:
            job = bulk.start(
                asked.action,
                **asked.chosen,
                **asked.options,
                **form.options,
                workflows=operable(request.user),
                id=form.token,
                by=request.user,
                reason=form.reason,
            )
        except BulkJobExistsError:  # sent twice
            return bulk.get(form.token)
        if job.left > form.said:
            raise StaleError(
                f"Not started: {job.left:,} instances match now, not {form.said:,}. Look again, then start it."
            )
        if not job.left and not job.done:
            raise StaleError("Not started: it applies to none of the instances any more.")
        return job


def _started(request: HtmxRequest, id: str) -> HttpResponse:
    where = reverse("studio:bulk-job", args=[id])
    return HttpResponseClientRedirect(where) if request.htmx else HttpResponseRedirect(where)


def _show(
    request: HtmxRequest, asked: Asked, form: StartForm, *, refused: str = "", status: int = 422
) -> HttpResponse:
    """Render the dialog. If it cannot be said what the job would do, say why."""
    found: Found | None = None
    problem = ""
    try:
        if asked.is_empty:
            problem = NOTHING_CHOSEN
        else:
            found = look(asked, request.user)
    except TooSlowError:
        problem = TOO_SLOW
    except RepriseError as error:
        problem = str(error)
    context: dict[str, Any] = {
        "asked": asked,
        "form": form,
        "found": found,
        "refused": refused if found else problem,
        "is_sheet": bool(request.htmx),
    }
    status = status if refused or problem else 200
    if request.htmx:
        return render(request, "studio/bulk/sheet.html", context, status=status)
    return page(request, "studio/bulk/new.html", status=status, **context)
