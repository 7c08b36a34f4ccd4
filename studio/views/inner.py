"""What is within a step, asked for when somebody opens it."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from engine.models import Instance
from engine.status.generations import generations_of
from studio import generations, inner
from studio.access import Verb
from studio.filters import cursor
from studio.views.guard import guard


@guard(get=Verb.VIEW)
def within(request: HttpRequest, name: str, id: str, seq: int) -> HttpResponse:
    """Answer with a page of the steps within one."""
    instance = Instance.objects.defer("params", "output").filter(workflow=name, id=id).first()
    if instance is None:
        raise Http404
    those = generations_of(instance, generations.wanted(instance, request.GET.get("generation", "")))
    shown = generations.as_of(instance, those.shown) if those.is_past else instance
    found = inner.read(
        shown, seq, cursor(request.GET.get("page", "")) or 1, place=generations.place_of(those)
    )
    if found is None:
        raise Http404
    return HttpResponse(inner.html_of(instance, found))
