"""Which methods an address takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from studio.views.errors import not_allowed

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def takes(*methods: str) -> Callable[[View[P]], View[P]]:
    """Refuse every other method with 405. HEAD goes with GET; nothing in a body or header overrides the method."""
    allowed = (*methods, "HEAD") if "GET" in methods else methods

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if request.method not in allowed:
                return not_allowed(request, allowed)
            if (
                request.method == "POST"
            ):  # what was typed may be secret: Django leaves it out of error reports
                request.sensitive_post_parameters = "__ALL__"  # type: ignore[attr-defined]
            return view(request, *args, **kwargs)

        return guarded

    return decorate
