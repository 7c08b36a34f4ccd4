"""The page on which a person chooses what the Studio looks like, and the zone of its times."""

from __future__ import annotations

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from studio.access.permissions import Verb
from studio.accounts.preferences import DENSITIES, THEMES, Preferences, keep, regions
from studio.frame.addresses import ignored
from studio.frame.guard import guard
from studio.frame.notes import note
from studio.frame.pieces import HtmxRequest, page

WORDS = {
    "system": "As the device",
    "light": "Light",
    "dark": "Dark",
    "normal": "Normal",
    "compact": "Compact",
    "comfortable": "Comfortable",
}


@guard(get=Verb.VIEW, post=Verb.VIEW)
def preferences(request: HtmxRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request, Preferences.of(request))
    typed = Preferences.typed(request.POST)
    if typed.problems:
        return _page(request, typed, status=422)
    note(request, "Saved your preferences.")
    response = HttpResponseRedirect(reverse("studio:preferences"))
    keep(request, response, theme=typed.theme, density=typed.density, zone=typed.zone)
    return response


def _page(request: HtmxRequest, chosen: Preferences, status: int = 200) -> HttpResponse:
    return page(
        request,
        "studio/accounts/preferences.html",
        status=status,
        chosen=chosen,
        refused="Not saved: fix what is marked." if chosen.problems else "",
        themes=[(one, WORDS[one]) for one in THEMES],
        densities=[(one, WORDS[one]) for one in DENSITIES],
        regions=regions(),
        ignored=ignored(request.GET, ()),
    )
