"""Error pages. None of them queries the database, which may be down."""

from __future__ import annotations

import logging
import math
import sys
import uuid
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlsplit

from django.contrib.auth import REDIRECT_FIELD_NAME
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect, HttpResponseClientRefresh
from psycopg_pool import PoolTimeout

from studio.access.login import login_address
from studio.access.permissions import ROLES, Verb, allowed
from studio.display.rendering import render
from studio.frame.addresses import own_path
from studio.frame.pieces import HtmxRequest, with_htmx

log = logging.getLogger("studio")

RETRY_AFTER_S = 5
LONGEST_PATH = 2_000


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if isinstance(exception, RequestDataTooBig | TooManyFieldsSent):
        return render(request, "studio/frame/errors/413.html", status=413)
    return render(request, "studio/frame/errors/400.html", status=400)


def too_long(request: HttpRequest) -> HttpResponse:
    """Answer 414 to a path that is longer than any of the Studio's."""
    return render(request, "studio/frame/errors/414.html", status=414)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    match = getattr(request, "resolver_match", None)
    # Only for addresses of instances: link to the other instances of the workflow.
    workflow = match.kwargs.get("name", "") if match is not None and "id" in match.kwargs else ""
    return render(
        request,
        "studio/frame/errors/404.html",
        {"path": request.path[:200], "workflow": workflow},
        status=404,
    )


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return forbidden(request, None)


def forbidden(request: HttpRequest, verb: Verb | None, *, needs: str = "") -> HttpResponse:
    """Answer 403; name the missing role, or who may do this."""
    context = {
        "role": ROLES[verb] if verb else "",
        "needs": needs,
        "sees_nothing": not allowed(getattr(request, "user", None), Verb.VIEW, None),
    }
    return render(request, "studio/frame/errors/403.html", context, status=403)


def sign_in_first(request: HtmxRequest, *, back: str | None = None) -> HttpResponse:
    """Redirect to sign-in, and from there back to this page, or to the address `back`."""
    where = login_address()
    back = _page_of(request) if back is None else back
    if back and urlsplit(where).netloc:  # on another host
        back = request.build_absolute_uri(back)
    target = f"{where}{'&' if '?' in where else '?'}{REDIRECT_FIELD_NAME}={quote(back)}" if back else where
    if request.htmx:
        # htmx must navigate the whole window, not swap the sign-in page into a fragment.
        return HttpResponseClientRedirect(target, status=401)
    return HttpResponseRedirect(target)


def _page_of(request: HtmxRequest) -> str:
    """Return the address of the page that the user is on; empty if the browser does not say."""
    if request.htmx:
        return own_path(request, request.htmx.current_url or "")
    if request.method in ("GET", "HEAD"):
        return request.get_full_path()
    return own_path(request, request.headers.get("Referer", ""))


def too_many(request: HttpRequest, wait: timedelta) -> HttpResponse:
    """Answer 429 to one attempt too many, and say when to try again."""
    return _wait(request, "studio/frame/errors/429.html", wait)


def busy(request: HttpRequest, wait: timedelta) -> HttpResponse:
    """Answer 429 to an attempt that found the server busy."""
    return _wait(request, "studio/frame/errors/busy.html", wait)


def _wait(request: HttpRequest, template: str, wait: timedelta) -> HttpResponse:
    seconds = max(1, math.ceil(wait.total_seconds()))
    said = f"{math.ceil(seconds / 60)} minutes" if seconds > 90 else f"{seconds} seconds"
    response = render(request, template, {"wait": said}, status=429)
    response.headers["Retry-After"] = str(seconds)
    return response


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer 403 to a form whose CSRF token is from an earlier sign-in, and explain it."""
    request = with_htmx(request)
    if request.htmx:
        response = HttpResponseClientRefresh()
        response.status_code = 403
        return response
    back = _page_of(request) or reverse("studio:home")
    return render(request, "studio/frame/errors/csrf.html", {"back": back}, status=403)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500, or 503 if the database does not answer."""
    cause = sys.exc_info()[1]
    if isinstance(cause, OperationalError | InterfaceError | PoolTimeout):
        return unavailable(request)
    reference = uuid.uuid4().hex[:12]
    log.error("Error page %s for %s", reference, request.path[:200])
    return render(request, "studio/frame/errors/500.html", {"reference": reference}, status=500)


def unavailable(request: HttpRequest) -> HttpResponse:
    """Answer 503. The page reloads itself."""
    response = render(request, "studio/frame/errors/503.html", {"seconds": RETRY_AFTER_S}, status=503)
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response


def not_allowed(request: HttpRequest, allowed: Any) -> HttpResponse:
    """Answer 405 with a page. `allowed` are the methods of the address."""
    response = render(request, "studio/frame/errors/405.html", {"allowed": ", ".join(allowed)}, status=405)
    response.headers["Allow"] = ", ".join(allowed)
    return response
