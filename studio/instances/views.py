"""The list of instances. Filters and position are in the address only."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.safestring import mark_safe

from engine.status import search
from studio.access.permissions import Verb
from studio.frame.addresses import cursor, ignored
from studio.frame.guard import guard
from studio.frame.patience import TooSlowError, patience
from studio.frame.pieces import page
from studio.instances import queries
from studio.instances.filters import Filter
from studio.instances.live import above_list
from studio.saved_views.opening import open_view
from studio.saved_views.tabs import bar_of

PATIENCE_S = 3


@guard(get=Verb.VIEW)
def instances(request: HttpRequest) -> HttpResponse:
    opened = open_view(request.GET, request.user)
    wanted = Filter.of(opened.given)
    before, after = cursor(request.GET.get("before", "")), cursor(request.GET.get("after", ""))
    frame: dict[str, Any] = {
        "wanted": wanted,
        "views": bar_of(request.user, opened),
        "names": search.workflow_names(),
        "without_q": wanted.query(q=""),
        "ignored": ignored(request.GET, _understood(wanted, before=before, after=after)),
    }
    try:
        with patience(PATIENCE_S):
            among = queries.narrowed(wanted)
            found = queries.page_of(wanted, before=before, after=after, among=among)
            above = above_list(wanted, 0, among)
    except TooSlowError:
        return page(request, "studio/instances/instances.html", is_too_slow=True, **frame)
    shown = ",".join(str(instance.key) for instance in found.instances)
    is_newest = found.newer is None
    topic = {"topic": "list", **wanted.filled, "keys": shown, "top": str(found.top) if is_newest else ""}
    return page(
        request,
        "studio/instances/instances.html",
        topic=urlencode(topic),
        rows=queries.rows_of(found.instances),
        found=found,
        strip_html=mark_safe(above["strip"].html),  # noqa: S308 - the output of a template
        more_html=mark_safe(above["more"].html),  # noqa: S308
        newer_query=wanted.query(after=str(found.newer or "")),
        older_query=wanted.query(before=str(found.older or "")),
        removable=[
            (label, value, wanted.query(**{label: ""})) for label, value in wanted.filled.items() if value
        ],
        **frame,
    )


def _understood(wanted: Filter, **cursors: int | None) -> set[str]:
    return {"view", *(name for name, value in (wanted.filled | cursors).items() if value)}
