"""What a site that is nothing but the Studio adds: its headers and its limit of paths, for every address.

In a larger site, the guards of the views do both for the Studio's own pages.
"""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from studio.api.site import PREFIX
from studio.frame.errors import LONGEST_PATH, too_long
from studio.frame.headers import set_headers

Handler = Callable[[HttpRequest], HttpResponse]


class PathLengthMiddleware:
    """Answer 414 to a path that is longer than any of the Studio's."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        is_api = request.path_info.startswith(f"/{PREFIX}")  # it answers with a problem of its own
        if len(request.path) > LONGEST_PATH and not is_api:
            return too_long(request)
        return self.get_response(request)


class HeadersMiddleware:
    """Set the Studio's headers; on errors and redirects too."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        set_headers(response, is_stored=request.path.startswith(settings.STATIC_URL))
        return response
