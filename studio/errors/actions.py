"""What people decide about an error: resolve, ignore, reopen. It holds for each group that the page shows."""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect

from engine.status.failures import FailureGroup
from engine.status.sentences.bidi import isolated
from engine.steer import failures
from engine.values.errors import FailureNotFoundError, RepriseError
from studio.access.permissions import Verb, require
from studio.errors.address import ErrorAddress
from studio.errors.ignore_form import IgnoreForm
from studio.errors.page import scope_of
from studio.errors.views import show_error
from studio.errors.visibility import relations_of, subject_of
from studio.frame.guard import guard
from studio.frame.notes import note
from studio.instance.actions import reason_of


@guard(post=Verb.OPERATE, action="error-resolve", about=subject_of)
def resolve(request: HttpRequest, fingerprint: str) -> HttpResponse:
    reason = reason_of(request)

    def act(group: FailureGroup) -> None:
        failures.resolve(group.fingerprint, by=request.user, reason=reason)

    return _decide(request, fingerprint, "resolved", act, "Resolved. It opens again if it fails again.")


@guard(post=Verb.OPERATE, action="error-ignore", about=subject_of)
def ignore(request: HttpRequest, fingerprint: str) -> HttpResponse:
    """Ignore it. A reason is required."""
    form = IgnoreForm.of(request.POST)
    asked = ErrorAddress.of(fingerprint, request.GET)
    if form.problem:
        return show_error(request, asked, status=422, refused=form.problem, form=form)
    until, count = form.until, form.failures

    def act(group: FailureGroup) -> None:
        failures.ignore(group.fingerprint, until=until, count=count, by=request.user, reason=form.reason)

    return _decide(request, fingerprint, "", act, "Ignored.")


@guard(post=Verb.OPERATE, action="error-reopen", about=subject_of)
def reopen(request: HttpRequest, fingerprint: str) -> HttpResponse:
    reason = reason_of(request)

    def act(group: FailureGroup) -> None:
        failures.reopen(group.fingerprint, by=request.user, reason=reason)

    return _decide(request, fingerprint, "open", act, "Reopened.")


def _decide(
    request: HttpRequest, fingerprint: str, state: str, act: Callable[[FailureGroup], None], done: str
) -> HttpResponse:
    """Act on each group that is not in this state already, all or none."""
    asked = ErrorAddress.of(fingerprint, request.GET)
    groups = scope_of(asked, relations_of(fingerprint, request.user))
    if not groups:
        raise Http404
    for group in groups:
        require(request.user, Verb.OPERATE, group.workflow)
    wanted = [group for group in groups if group.state != state]
    if not wanted:
        return show_error(request, asked, status=409, refused=_already(groups[0]))
    try:
        with transaction.atomic():
            for group in sorted(wanted, key=lambda one: one.fingerprint):  # two people must not deadlock
                act(group)
    except FailureNotFoundError:
        raise Http404 from None
    except RepriseError as error:
        return show_error(request, asked, status=422, refused=str(error))
    note(request, done)
    return HttpResponseRedirect(asked.url())


def _already(group: FailureGroup) -> str:
    by = f" {isolated(group.decided_by)}" if group.decided_by else ""
    return f"It is already {group.state}{f', by{by}' if by else ''}. Nothing was changed."
