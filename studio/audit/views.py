"""The audit trail, as a page and as a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlencode

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone

from engine.status.search import workflow_names
from studio.access.permissions import Verb
from studio.audit import files
from studio.audit import queries as audit_trail
from studio.audit.words import ACTIONS
from studio.frame import pieces
from studio.frame.addresses import cursor, ignored
from studio.frame.errors import bad_request
from studio.frame.guard import guard
from studio.frame.patience import TooSlowError, patience
from studio.frame.pieces import page

PATIENCE_S = 3


@guard(get=Verb.VIEW)
def audit(request: HttpRequest) -> HttpResponse:
    wanted, before = audit_trail.Wanted.of(request.GET), cursor(request.GET.get("before", ""))
    frame: dict[str, Any] = {
        "wanted": wanted,
        "verbs": sorted(ACTIONS),
        "names": workflow_names(),
        "before": before,
        "ignored": ignored(request.GET, {*wanted.filled, *(["before"] if before else [])}),
    }
    try:
        with patience(PATIENCE_S):
            found = audit_trail.page_of(wanted, before=before)
    except TooSlowError:
        return page(request, "studio/audit/audit.html", is_too_slow=True, **frame)
    topic = {"topic": "audit", **wanted.filled, "top": str(found.top)}
    return page(
        request,
        "studio/audit/audit.html",
        pieces.Drawing({"more": pieces.more_piece(0, "")}),
        topic=urlencode(topic) if before is None else "",
        found=found,
        older_query=wanted.query(before=str(found.older or "")),
        removable=[(name, value, wanted.query(**{name: ""})) for name, value in wanted.filled.items()],
        window=audit_trail.WINDOW,
        exported=audit_trail.EXPORTED,
        **frame,
    )


@guard(get=Verb.VIEW)
def export(request: HttpRequest, form: str) -> HttpResponseBase:
    """Stream all matching rows as a file.

    Answers 400 to an unknown filter.
    """
    kind, write = files.FORMS[form]
    wanted = audit_trail.Wanted.of(request.GET)
    if ignored(request.GET, wanted.filled):
        return bad_request(request)  # a file cannot say that it contains more than was asked for
    parts = write(audit_trail.export(wanted))
    return StreamingHttpResponse(
        # Django would read a plain iterator to its end before sending the first byte.
        _one_by_one(parts) if isinstance(request, ASGIRequest) else parts,
        content_type=kind,
        headers={
            "Content-Disposition": f'attachment; filename="audit-{timezone.now():%Y-%m-%d}.{form}"',
            "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
        },
    )


async def _one_by_one(parts: Iterator[str]) -> AsyncIterator[str]:
    while (part := await sync_to_async(_next)(parts)) is not None:
        yield part


def _next(parts: Iterator[str]) -> str | None:
    # StopIteration cannot be raised into a coroutine.
    return next(parts, None)
