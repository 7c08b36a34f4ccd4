"""Home: what needs attention, in one sentence and one list."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from studio.topics import Topic, draw
from studio.views.methods import takes
from studio.views.pages import page


@takes("GET")
def home(request: HttpRequest) -> HttpResponse:
    return page(request, "pages/home.html", draw(Topic("home"), request.user), topic="topic=home")
