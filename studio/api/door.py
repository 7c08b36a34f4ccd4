"""What surrounds every view of the API: limits, headers, and refusals that no operation sees, as problem details."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import Error
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from ninja.errors import HttpError

from engine.configuration import setting
from engine.values.errors import RepriseError
from studio.api.auth import authenticate
from studio.api.problems import ProblemError, of_database, of_engine, problem
from studio.frame.compression import compress
from studio.frame.errors import LONGEST_PATH
from studio.frame.guard import Rule, add_rule

log = logging.getLogger("studio")

View = Callable[..., HttpResponseBase]
AsyncView = Callable[..., Awaitable[HttpResponseBase]]

# Nothing that a browser shows comes from here.
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
# A browser that opens one of these stores it as a file.
DOWNLOADED = ("application/json", "application/problem+json")
EXPOSED = "ETag, Idempotency-Replayed, Location, RateLimit, RateLimit-Policy, Retry-After"
ACCEPTED = "Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID"
PREFLIGHT_S = "600"


def door(view: View, methods: Iterable[str], *, is_public: bool = False) -> View:
    """Return the view with everything around it; `methods` are those that it accepts, and HEAD goes with GET.

    Requests with another method are refused; unless the address is public, only after their sender is known.
    """
    accepted = _accepted(methods)

    @wraps(view)
    def opened(request: HttpRequest, /, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase | None
        try:
            response = _preflight(request, accepted)
            if response is None:
                if not is_public and _is_wrong(request, accepted):
                    authenticate(request)
                _check(request, accepted)
                with _head_as_get(request):
                    response = view(request, *args, **kwargs)
        except Exception as error:  # noqa: BLE001  whatever an operation raises, the client gets a problem
            response = refused(request, error)
        return _finished(request, response)

    return _ours(opened, accepted)


def async_door(view: AsyncView, methods: Iterable[str], *, is_public: bool = False) -> AsyncView:
    """Return the same for an async view."""
    accepted = _accepted(methods)

    @wraps(view)
    async def opened(request: HttpRequest, /, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase | None
        try:
            response = _preflight(request, accepted)
            if response is None:
                if not is_public and _is_wrong(request, accepted):
                    await sync_to_async(authenticate)(request)
                _check(request, accepted)
                with _head_as_get(request):
                    response = await view(request, *args, **kwargs)
        except Exception as error:  # noqa: BLE001  the same
            response = refused(request, error)
        return _finished(request, response)

    return _ours(opened, accepted)


@contextmanager
def _head_as_get(request: HttpRequest) -> Iterator[None]:
    """Let operations see HEAD as GET. The server leaves out the body of the answer."""
    method = request.method
    if method == "HEAD":
        request.method = "GET"
    try:
        yield
    finally:
        request.method = method


def refused(request: HttpRequest, error: Exception) -> HttpResponse:
    """Return the answer to a request that ended with an error. What nobody expected is logged with a reference."""
    if isinstance(error, ProblemError):
        return problem(error)
    if isinstance(error, RepriseError):
        return problem(of_engine(error))
    if isinstance(error, Http404):
        return problem(ProblemError(404, "not_found", "There is nothing at this address."))
    if isinstance(error, PermissionDenied):  # of the project's own authentication
        return problem(ProblemError(403, "not_allowed", str(error) or "The project does not allow this."))
    if isinstance(error, SuspiciousOperation) and not isinstance(error, RequestDataTooBig):
        return problem(ProblemError(400, "unreadable_request", "The request cannot be read."))
    if isinstance(error, HttpError):  # of the project's own authentication
        return problem(ProblemError(error.status_code, "refused", str(error)))
    if isinstance(error, RequestDataTooBig):
        return problem(ProblemError(413, "body_too_large", "The body is too large."))
    if isinstance(error, Error):
        try:
            return problem(of_database(error))
        except Error:
            pass
    reference = uuid.uuid4().hex[:12]
    log.error("Internal error %s at %s", reference, request.path[:200], exc_info=error)
    detail = f"This is an error of the Studio, not of the request. The log has it under {reference}."
    return problem(ProblemError(500, "internal_error", detail))


def _accepted(methods: Iterable[str]) -> tuple[str, ...]:
    given = tuple(methods)
    return (*given, "HEAD") if "GET" in given and "HEAD" not in given else given


def _ours(view: Any, methods: tuple[str, ...]) -> Any:
    view.csrf_exempt = True  # nothing here reads cookies
    view.login_required = False
    # What an operation writes is committed before its answer, also on a site that wraps views in transactions: a count
    # or a denied attempt must not be rolled back with the rest.
    view._non_atomic_requests = set(settings.DATABASES)
    add_rule(view, Rule(methods, {}, takes_payload="POST" in methods, is_by_token=True))
    return view


def _preflight(request: HttpRequest, methods: tuple[str, ...]) -> HttpResponse | None:
    """Return the answer to the question of a browser whether a page may send a request."""
    is_asked = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
    if not is_asked or not _cors_origin(request):
        return None
    headers = {
        "Access-Control-Allow-Methods": ", ".join(methods),
        "Access-Control-Allow-Headers": ACCEPTED,
        "Access-Control-Max-Age": PREFLIGHT_S,
    }
    return HttpResponse(status=204, headers=headers)


def _is_wrong(request: HttpRequest, methods: tuple[str, ...]) -> bool:
    return request.method not in methods or len(request.path) > LONGEST_PATH


def _check(request: HttpRequest, methods: tuple[str, ...]) -> None:
    """Raise ProblemError for a request that no operation needs to see."""
    if len(request.path) > LONGEST_PATH:
        detail = f"An address has {LONGEST_PATH} characters at most."
        raise ProblemError(414, "address_too_long", detail)
    if request.method not in methods:
        taken = " and ".join(one for one in methods if one != "HEAD") or "nothing"
        detail = f"This address takes {taken}, not {str(request.method)[:20]}."
        raise ProblemError(405, "method_not_allowed", detail, headers={"Allow": ", ".join(methods)})


def _finished(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    for name, value in {**HEADERS, **getattr(request, "rate_headers", {})}.items():
        response.headers.setdefault(name, value)
    if response.headers.get("Content-Type", "").split(";")[0] in DOWNLOADED:
        response.headers.setdefault("Content-Disposition", "attachment")
    origin = _cors_origin(request)
    if setting("API_CORS_ORIGINS"):
        patch_vary_headers(response, ["Origin"])
    if origin:
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Expose-Headers"] = EXPOSED
        response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    compress(request, response)
    return response


def _cors_origin(request: HttpRequest) -> str:
    """Return the origin of the page that asks, if the setting lists it."""
    origin = request.headers.get("Origin", "")
    return origin if origin in setting("API_CORS_ORIGINS") else ""
