"""The addresses of the Studio, for any prefix: `path("ops/", include("studio.urls"))`."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.http import Http404, HttpRequest
from django.urls import URLPattern, URLResolver
from django.urls.resolvers import RoutePattern

app_name = "studio"


class NotInstalled(URLPattern):
    """Stands for all addresses if the app is not installed, and says so in `manage.py check`."""

    def __init__(self) -> None:
        super().__init__(RoutePattern(""), _no_page)

    def check(self) -> list[CheckMessage]:
        message = 'ROOT_URLCONF includes "studio.urls", but the app "studio" is not installed.'
        return [Error(message, hint='Add: INSTALLED_APPS += ["studio"]', id="studio.E006")]


def _no_page(request: HttpRequest, **_: Any) -> Any:
    raise Http404


urlpatterns: list[URLPattern | URLResolver]
if apps.is_installed("studio"):
    from studio.pages import urlpatterns
else:  # its views would fail to load
    urlpatterns = [NotInstalled()]
