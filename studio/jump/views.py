"""The pages that help people get about: what was found, and the keys; each alone for a dialog, too."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from studio.access.permissions import Verb
from studio.display.rendering import render
from studio.frame.addresses import ignored
from studio.frame.guard import guard
from studio.frame.patience import TooSlowError, patience
from studio.frame.pieces import HtmxRequest, page
from studio.jump.found import LONGEST, Group, find

PATIENCE_S = 1


@guard(get=Verb.VIEW)
def jump(request: HtmxRequest) -> HttpResponse:
    """Answer with what the text `q` can mean."""
    typed = request.GET.get("q", "")[:LONGEST]
    groups: tuple[Group, ...] = ()
    try:
        with patience(PATIENCE_S):
            groups = find(request.user, typed)
    except TooSlowError:
        pass
    context: dict[str, Any] = {"groups": groups, "typed": typed}
    if request.htmx:
        return render(request, "studio/jump/found.html", context)
    return page(request, "studio/jump/jump.html", ignored=ignored(request.GET, ("q",)), **context)


@guard(get=Verb.VIEW)
def shortcuts(request: HtmxRequest) -> HttpResponse:
    """Answer with the keys that the Studio knows."""
    if request.htmx:
        return render(request, "studio/jump/shortcuts-dialog.html", {})
    return page(request, "studio/jump/shortcuts.html", ignored=ignored(request.GET, ()))
