"""Home: what needs attention, in one sentence and one list."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from studio.access import Verb
from studio.home_live import HomeView
from studio.views.guard import guard
from studio.views.pages import page


@guard(get=Verb.VIEW)
def home(request: HttpRequest) -> HttpResponse:
    return page(request, "pages/home.html", HomeView().draw(request.user), topic="topic=home")
