"""What Django calls when a request fails before any view: a page for people, a problem for programs."""

from __future__ import annotations

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, JsonResponse

from studio.access.problem import CODES, CONTENT_TYPE, PROGRAMS, problem_of
from studio.frame import errors
from studio.frame.headers import set_headers


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer 400; to programs 403 if the host name is not allowed."""
    if PROGRAMS not in request.path:
        return errors.bad_request(request, exception)
    if isinstance(exception, DisallowedHost):
        status, detail = 403, "This host name is not allowed."
    else:
        status, detail = 400, "The request cannot be read."
    response = JsonResponse(
        problem_of(status, CODES[status], detail), status=status, content_type=CONTENT_TYPE
    )
    set_headers(response)
    return response
