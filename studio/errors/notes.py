"""Add a note to an error. It is a note on each group that the page shows."""

from __future__ import annotations

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect

from engine.steer import failure_notes
from engine.values.errors import FailureNotFoundError, InvalidValueError, LimitError
from studio.access.permissions import Verb, require
from studio.errors.address import ErrorAddress
from studio.errors.page import scope_of
from studio.errors.views import show_error
from studio.errors.visibility import relations_of, subject_of
from studio.forms.tokens import token_of
from studio.frame.guard import guard
from studio.frame.notes import note
from studio.instance.notes import LONGEST_SHOWN


@guard(post=Verb.OPERATE, action=failure_notes.VERB, about=subject_of)
def add_note(request: HttpRequest, fingerprint: str) -> HttpResponse:
    """Add it. The form's token makes a form that is sent twice one note."""
    asked = ErrorAddress.of(fingerprint, request.GET)
    groups = scope_of(asked, relations_of(fingerprint, request.user))
    if not groups:
        raise Http404
    for group in groups:
        require(request.user, Verb.OPERATE, group.workflow)
    text, form = request.POST.get("text", ""), token_of(request.POST.get("token", ""))
    try:
        with transaction.atomic():
            for group in groups:
                failure_notes.add_note(group.fingerprint, text, by=request.user, form=form)
    except (InvalidValueError, LimitError) as error:
        typed = text.replace("\0", "")[:LONGEST_SHOWN]
        return show_error(request, asked, status=422, refused=str(error), note_text=typed)
    except FailureNotFoundError:
        raise Http404 from None
    note(request, "Added your note.")
    return HttpResponseRedirect(f"{asked.url()}#notes")
