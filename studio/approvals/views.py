"""The inbox of requests. A GET never answers one."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from studio.access.permissions import Verb
from studio.approvals import queries as inbox
from studio.approvals.entry import Entry
from studio.approvals.live import draw_approvals
from studio.frame.addresses import ignored
from studio.frame.guard import guard
from studio.frame.pieces import page


@guard(get=Verb.VIEW)
def approvals(request: HttpRequest) -> HttpResponse:
    return show_inbox(request, request.GET.get("box", ""), request.GET.get("r", ""))


def show_inbox(
    request: HttpRequest,
    name: str,
    chosen: str,
    *,
    status: int = 200,
    typed: Entry | None = None,
    refused: str = "",
) -> HttpResponse:
    """Render a box with one request next to it, also after a rejected answer."""
    understood = ["box"] if name in inbox.BOXES else []
    name = name if name in inbox.BOXES else inbox.BOXES[0]
    box = inbox.box_of(name, request.user)
    shown = typed or (inbox.entry_of(chosen, request.user) if chosen else next(iter(box.entries), None))
    mine = inbox.count_mine(request.user)
    return page(
        request,
        "studio/approvals/approvals.html",
        draw_approvals(box, shown, mine=mine),
        approvals_mine=mine,
        topic=urlencode({"topic": "approvals", "box": name, "r": shown.ref if shown else ""}),
        status=status,
        is_chosen=bool(chosen) and shown is not None,
        back=f"{reverse('studio:approvals')}?box={name}",
        refused=refused,
        ignored=ignored(request.GET, [*understood, *(["r"] if shown or not chosen else [])]),
    )
