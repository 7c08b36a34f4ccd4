"""The pages for what went wrong. None of them touches the database: it may be what is away."""

from __future__ import annotations

import logging
import sys
import uuid
from typing import Any

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from psycopg_pool import PoolTimeout

from studio.permissions import Role

log = logging.getLogger("studio")

RETRY_AFTER_S = 5


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if isinstance(exception, RequestDataTooBig | TooManyFieldsSent):
        return render(request, "errors/413.html", status=413)
    return render(request, "errors/400.html", status=400)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    match = getattr(request, "resolver_match", None)
    # Only where the address is one of an instance: then the others of its workflow are what was looked for.
    workflow = match.kwargs.get("name", "") if match is not None and "id" in match.kwargs else ""
    return render(request, "errors/404.html", {"path": request.path[:200], "workflow": workflow}, status=404)


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return forbidden(request, None)


def forbidden(request: HttpRequest, role: Role | None, *, needs: str = "") -> HttpResponse:
    """Answer 403 and name the missing role, or who alone may do this."""
    context = {"role": role.word if role else "", "needs": needs}
    return render(request, "errors/403.html", context, status=403)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form whose token is of an earlier sign-in: say it, instead of a silent failure."""
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(status=403, headers={"HX-Refresh": "true"})
    return render(request, "errors/csrf.html", status=403)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500, or 503 when it is the database that does not answer."""
    cause = sys.exc_info()[1]
    if isinstance(cause, OperationalError | InterfaceError | PoolTimeout):
        return unavailable(request)
    reference = uuid.uuid4().hex[:12]
    log.error("Error page %s for %s", reference, request.path[:200])
    return render(request, "errors/500.html", {"reference": reference}, status=500)


def unavailable(request: HttpRequest) -> HttpResponse:
    """Answer 503; the page asks again by itself."""
    response = render(request, "errors/503.html", {"seconds": RETRY_AFTER_S}, status=503)
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response


def not_allowed(request: HttpRequest, allowed: Any) -> HttpResponse:
    """Answer 405 with a page; `allowed` are the methods that the address takes."""
    response = render(request, "errors/405.html", {"allowed": ", ".join(allowed)}, status=405)
    response.headers["Allow"] = ", ".join(allowed)
    return response
