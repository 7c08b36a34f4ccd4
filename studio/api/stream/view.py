"""The address of streams."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from engine.status.changes import Cursor, Kind, read
from studio.access.anonymous_queue import release_turn
from studio.access.people import in_thread
from studio.access.permissions import Verb, allowed, sees_all
from studio.access.principals import Principal
from studio.api import parameters
from studio.api.auth import authenticate, principal_key, refusal
from studio.api.problems import ProblemError
from studio.api.reading import instance_of
from studio.api.stream import limits
from studio.api.stream.feed import Wanted
from studio.api.stream.flow import Flow
from studio.api.stream.stream import Reader, Stream
from studio.api.stream.watch import Watch

CONTENT_TYPE = "text/event-stream; charset=utf-8"
LAST_EVENT_ID = "Last-Event-ID"
PARAMETERS = ("cursor", "types")
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Encoding": "identity",  # Django's GZipMiddleware would hold events back
    "X-Accel-Buffering": "no",  # so would nginx
}


async def subscribe(request: HttpRequest, name: str, id: str) -> HttpResponseBase:
    """Stream what an instance records: from the beginning or from a cursor, until it ends."""
    reader = await in_thread(_admitted, request, name, id)
    # The stream must not hold up those who wait in line.
    release_turn(getattr(request, "scope", {}))
    if reader is None:
        return HttpResponse(status=204)  # browsers do not come again
    if request.META["REQUEST_METHOD"] == "HEAD":  # the door lets it in as GET
        return HttpResponse(content_type=CONTENT_TYPE, headers=HEADERS)
    flow = Flow()
    stream = Stream(reader, Watch(request, reader.holder, name, is_token=reader.is_token), flow)
    return StreamingHttpResponse(
        stream.events(), content_type=CONTENT_TYPE, headers={**HEADERS, **flow.header}
    )


def _admitted(request: HttpRequest, name: str, id: str) -> Reader | None:
    """Return who reads what; None if there is nothing more after the cursor. Raises ProblemError."""
    holder = authenticate(request)
    if not allowed(holder, Verb.VIEW, name):
        raise refusal(holder, Verb.VIEW, name)
    parameters.check(request, PARAMETERS)
    kinds = _kinds(request.GET.get("types"))
    key = instance_of(name, id).key
    cursor = Cursor(key)
    text = request.headers.get(LAST_EVENT_ID) or request.GET.get("cursor")
    if text is not None:
        cursor = Cursor.of(text, key)
        page = read(cursor, kinds, limit=1)  # refuses a cursor of another database
        if cursor.is_end and page.end is not None and not page.changes:
            return None
    limits.check(principal_key(holder))
    return Reader(
        principal_key(holder),
        isinstance(holder, Principal),
        cursor,
        has_cursor=text is not None,
        wanted=Wanted(kinds, names_relatives=sees_all(holder)),
    )


def _kinds(given: str | None) -> tuple[Kind, ...]:
    """Read the parameter `types`. Raises ProblemError."""
    if given is None:
        return tuple(Kind)
    names = given.split(",")
    known = {str(kind): kind for kind in Kind}
    for name in names:
        if name not in known:
            message = f'"{name[:64]}" is not a type of event. The types are {", ".join(known)}.'
            raise ProblemError(
                422,
                "invalid_request",
                message,
                errors=[{"path": "types", "code": "unknown_type", "message": message}],
            )
    return tuple(kind for kind in Kind if kind in names)
