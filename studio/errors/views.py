"""The list of errors, and the page of one."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse

from engine.status.search import workflow_names
from studio.access.permissions import Verb, visible
from studio.errors import groups, page
from studio.errors.address import ErrorAddress, ListAddress
from studio.errors.ignore_form import IgnoreForm
from studio.errors.live import draw_error, draw_errors
from studio.errors.visibility import subject_of
from studio.forms.tokens import new_token
from studio.frame import pieces
from studio.frame.guard import guard


@guard(get=Verb.VIEW)
def errors(request: HttpRequest) -> HttpResponse:
    asked = ListAddress.of(request.GET)
    found = groups.page_of(asked, request.user)
    shown = ",".join(row.group.fingerprint for row in found.rows)
    return pieces.page(
        request,
        "studio/errors/errors.html",
        draw_errors(asked, found, request.user),
        topic=urlencode({"topic": "errors", **asked.parameters, "after": asked.after, "shown": shown}),
        asked=asked,
        ignored=asked.ignored,
        names=visible(request.user, workflow_names()),
        rows=found.rows,
        first=asked.url() if asked.after else "",
        older=asked.url(after=found.older) if found.older else "",
    )


@guard(get=Verb.VIEW, about=subject_of)
def error(request: HttpRequest, fingerprint: str) -> HttpResponse:
    return show_error(request, ErrorAddress.of(fingerprint, request.GET))


def show_error(
    request: HttpRequest,
    asked: ErrorAddress,
    *,
    status: int = 200,
    refused: str = "",
    form: IgnoreForm | None = None,
    note_text: str = "",
) -> HttpResponse:
    """Render the page of an error, also after a refused decision or note. `form` is one with a problem."""
    found = page.read(asked, request.user)
    if found is None:
        raise Http404
    topic = {"topic": f"error:{asked.fingerprint}", **asked.parameters, "after": asked.after}
    return pieces.page(
        request,
        "studio/errors/error.html",
        draw_error(found, request.user),
        topic=urlencode({name: value for name, value in topic.items() if value}),
        status=status,
        d=found,
        asked=asked,
        ignored=asked.ignored,
        refused=refused,
        form=form or IgnoreForm(),
        is_wrong=form is not None,
        may_act=found.may_act,
        resolve=asked.act("resolve"),
        ignore=asked.act("ignore"),
        reopen=asked.act("reopen"),
        note_address=asked.act("note"),
        note_text=note_text,
        token=new_token(),
    )
