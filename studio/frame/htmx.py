"""The request as the Studio's views get it: with what htmx says in its headers."""

from __future__ import annotations

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails


class HtmxRequest(HttpRequest):
    """A request with `htmx`, which is true for one of htmx's; the middleware of django-htmx sets it."""

    htmx: HtmxDetails
