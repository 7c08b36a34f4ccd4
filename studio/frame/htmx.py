"""The request that the Studio's views get, with htmx's headers."""

from __future__ import annotations

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails


class HtmxRequest(HttpRequest):
    """A request with `htmx`, which is true if htmx sent it. The middleware of django-htmx sets it."""

    htmx: HtmxDetails
