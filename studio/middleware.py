"""Limit the length of paths, and set headers. Access does not depend on either: each view checks it."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

Handler = Callable[[HttpRequest], HttpResponse]

LONGEST_PATH = 2_000


class PathLengthMiddleware:
    """Answer 414 to a path that is longer than any of the Studio's."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if len(request.path) > LONGEST_PATH:
            return render(request, "studio/frame/errors/414.html", status=414)
        return self.get_response(request)


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
