"""What holds for every request: nobody unknown gets in, and the browser is told what it may do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from engine import audit
from engine.models import Instance, ScheduleRow
from engine.registry import workflows as registry
from studio.permissions import PUBLIC, ROUTES, STEERING, needed, role_of
from studio.views.errors import forbidden

Handler = Callable[[HttpRequest], HttpResponse]

LONGEST_PATH = 2_000


class AccessMiddleware:
    """Refuse by default: a route is public, or it names the role that it needs, or nobody reaches it."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if len(request.path) > LONGEST_PATH:
            return render(request, "errors/414.html", status=414)
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Handler, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        match = request.resolver_match
        route = match.url_name if match else None
        # Only the Studio's own routes: in a larger Django project the others answer for themselves.
        if getattr(view, "__module__", "").split(".")[0] != "studio" or route in PUBLIC:
            return None
        user = request.user
        if not user.is_authenticated:
            return _sign_in_first(request)
        role = needed(str(route), request.method or "")
        if role is None and route in ROUTES:
            return None  # the view answers 405
        if role is None or role_of(user) < role:
            _note_refusal(request, str(route), kwargs)
            return forbidden(request, role)
        return None


class HeadersMiddleware:
    """Set the headers that Django's own middleware does not; on errors and redirects too."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        # Pages hold parameters and results: no copy of them stays in the browser or on the way.
        if not request.path.startswith(settings.STATIC_URL):
            response.headers.setdefault("Cache-Control", "no-store")
        return response


def _note_refusal(request: HttpRequest, route: str, names: Any) -> None:
    """Leave a row in the trail of what somebody wanted to start or to steer, and may not."""
    if request.method != "POST" or route not in STEERING:
        return
    if "key" in names:
        _note_refused_schedule(request, route, names["key"])
        return
    verb, workflow = route.replace("-", "_"), names["name"]
    if "id" not in names:
        if workflow in registry:
            audit.note(verb, workflow, audit.Cause.of(request.user), outcome="denied")
        return
    instance = Instance.objects.filter(workflow=workflow, id=names["id"]).first()
    if instance is not None:
        audit.record(
            verb, instance, by=request.user, before=instance.status, after=instance.status, outcome="denied"
        )


def _note_refused_schedule(request: HttpRequest, verb: str, key: int) -> None:
    row = ScheduleRow.objects.filter(key=key).first()
    if row is not None:
        cause, data = audit.Cause.of(request.user), {"schedule": row.name}
        audit.note(verb, row.workflow, cause, outcome="denied", data=data)


def _sign_in_first(request: HttpRequest) -> HttpResponse:
    where = reverse("sign-in")
    if request.headers.get("HX-Request") == "true":
        # A fragment must not be replaced by a sign-in page: htmx goes there with the whole window.
        return HttpResponse(status=401, headers={"HX-Redirect": where})
    target = f"{where}?next={quote(request.get_full_path())}" if request.method == "GET" else where
    return HttpResponseRedirect(target)
