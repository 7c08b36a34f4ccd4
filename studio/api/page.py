"""The page on which people read about the API and try it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from studio.access.permissions import Verb
from studio.frame.guard import guard
from studio.frame.pieces import page


@guard(get=Verb.VIEW)
def docs(request: HttpRequest) -> HttpResponse:
    return page(request, "studio/api/docs.html")
