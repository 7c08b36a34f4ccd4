"""What is within a step, asked for when somebody opens it."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from engine.models import Instance
from engine.status.snapshot import GenerationNotFoundError, snapshot
from studio import inner
from studio.access import Verb
from studio.filters import cursor
from studio.instance_page import place_of
from studio.views.guard import guard


@guard(get=Verb.VIEW)
def within(request: HttpRequest, name: str, id: str, seq: int) -> HttpResponse:
    """Answer with a page of the steps within one."""
    instance = Instance.objects.defer("params", "output").filter(workflow=name, id=id).first()
    if instance is None:
        raise Http404
    try:
        snapped = snapshot(instance, cursor(request.GET.get("generation", "")), output_up_to=0)
    except GenerationNotFoundError:
        raise Http404 from None
    place = place_of(snapped.generations)
    found = inner.read(snapped.instance, seq, cursor(request.GET.get("page", "")) or 1, place=place)
    if found is None:
        raise Http404
    return HttpResponse(inner.html_of(instance, found))
