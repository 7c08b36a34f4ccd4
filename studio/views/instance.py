"""The page of one instance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from django.http import Http404, HttpRequest, HttpResponse

from engine.models import Instance
from studio import dossier, inbox, inner
from studio.drawn_steps import step_html
from studio.filters import cursor, opened
from studio.forms import new_token
from studio.topics import Piece, draw_instance
from studio.views.methods import takes
from studio.views.pages import page

TABS = ("", "logs", "raw")


@takes("GET")
def instance(request: HttpRequest, name: str, id: str) -> HttpResponse:
    return instance_page(request, name, id)


def instance_page(
    request: HttpRequest,
    name: str,
    id: str,
    *,
    status: int = 200,
    typed: inbox.Entry | None = None,
    **context: object,
) -> HttpResponse:
    """Draw it; also after a refused action, with what was refused."""
    upto = cursor(request.GET.get("upto", ""))
    try:
        found = dossier.of(name, id, upto)
    except Instance.DoesNotExist:
        raise Http404 from None
    kind = str(context.get("event_type", next(iter(found.wanted_events), "")))
    about = next((one for one in found.declared_events if one.name == kind), None)
    within = inner.opened(found.instance, opened(request.GET.get("open", "")))
    drawing = draw_instance(found, request.user, typed=typed)
    return page(
        request,
        "pages/instance.html",
        replace(drawing, pieces={**drawing.pieces, **opened_steps(found, within)}),
        topic=f"topic=instance:{found.instance.key}" + (f"&upto={upto}" if upto is not None else ""),
        status=status,
        **{
            "event_type": kind,
            "event_text": about.example if about else "",
            "payload_is_required": about is not None and about.is_required,
            "d": found,
            "instance": found.instance,
            "token": new_token(),
            **context,
        },
    )


def opened_steps(found: dossier.Dossier, within: Mapping[int, str]) -> dict[str, Piece]:
    """Draw again the steps that the address asks to be open, with what is within them."""
    return {
        line.anchor: Piece(step_html(line, found.instance, inner=within[line.step.seq]))
        for line in found.lines
        if line.step.seq in within
    }
