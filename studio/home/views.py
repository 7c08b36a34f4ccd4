"""The home page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from studio.access.permissions import Verb
from studio.frame.guard import guard
from studio.frame.pieces import page
from studio.home.live import HomeView


@guard(get=Verb.VIEW)
def home(request: HttpRequest) -> HttpResponse:
    return page(request, "studio/home/home.html", HomeView().draw(request.user), topic="topic=home")
