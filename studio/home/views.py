"""The home page."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse

from studio.access.permissions import Verb
from studio.frame.addresses import ignored
from studio.frame.guard import guard
from studio.frame.pieces import page
from studio.home.live import HomeView


@guard(get=Verb.VIEW)
def home(request: HttpRequest) -> HttpResponse:
    view = HomeView.asked(request.GET)
    topic = {"topic": "home", "who": view.who}
    return page(
        request,
        "studio/home/home.html",
        view.draw(request.user),
        topic=urlencode({name: value for name, value in topic.items() if value}),
        ignored=ignored(request.GET, {"who"} if view.who else set()),
    )
