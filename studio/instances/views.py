"""The list of instances. What is searched for, its order, columns and place are in the address only."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.safestring import mark_safe

from engine.bulk import BulkAction
from engine.status.searching.candidates import LookedUp
from studio.access.permissions import Verb, allowed
from studio.frame.guard import guard
from studio.frame.live_view import LONGEST_QUERY
from studio.frame.patience import TooSlowError, patience
from studio.frame.pieces import page
from studio.instances import finding, queries
from studio.instances.address import ListAddress
from studio.instances.chips import chips_of
from studio.instances.columns import LONGEST_PATH, MOST
from studio.instances.heads import columns_of, heads_of
from studio.instances.live import above_list
from studio.instances.windows import WINDOWS, wider, windows_of
from studio.saved_views.opening import open_view
from studio.saved_views.search import Search
from studio.saved_views.tabs import bar_of

PATIENCE_S = 3
# What can be done to ticked instances, with its icon.
BULK_ACTIONS = (
    (BulkAction.RETRY, "rotate-cw"),
    (BulkAction.PAUSE, "pause"),
    (BulkAction.RESUME, "play"),
    (BulkAction.RESTART, "rotate-ccw"),
    (BulkAction.TERMINATE, "square"),
)
TEMPLATE = "studio/instances/instances.html"


@guard(get=Verb.VIEW)
def instances(request: HttpRequest) -> HttpResponse:
    opened = open_view(request.GET, request.user)
    asked = ListAddress.of(opened.given)
    frame = _frame(asked) | {"views": bar_of(request.user, opened, Search.of_text(asked.typed, asked.kept))}
    if asked.query.problems:
        return page(request, TEMPLATE, problems=[chip for chip in frame["chips"] if chip.message], **frame)
    looked_up: LookedUp = {}
    try:
        with patience(PATIENCE_S):
            found = finding.page_of(asked, request.user, looked_up)
    except TooSlowError:
        return page(request, TEMPLATE, is_too_slow=True, narrower=_narrower(asked, request.user), **frame)
    above = above_list(asked, 0, finding.counts_of(asked, request.user, looked_up))
    return page(
        request,
        TEMPLATE,
        topic=_topic(asked, found),
        rows=queries.rows_of(found.instances, asked.columns, is_list=True),
        found=found,
        strip_html=mark_safe(above["strip"].html),  # noqa: S308 - the output of a template
        more_html=mark_safe(above["more"].html),  # noqa: S308
        newer=asked.url(after=found.newer) if found.newer else "",
        older=asked.url(before=found.older) if found.older else "",
        searched=found.searched,
        first=asked.url(),
        here=request.get_full_path(),
        may_act=allowed(request.user, Verb.OPERATE, None),
        bulk_actions=BULK_ACTIONS,
        is_later=bool(asked.before or asked.after),
        go_on=asked.url(before=found.go_on) if found.go_on else "",
        hint=(found.hint, asked.url(query=f"{asked.query.text} {found.hint}")) if found.hint else (),
        wider=wider(asked.query, lambda text: asked.url(query=text)),
        **frame,
    )


def _frame(asked: ListAddress) -> dict[str, Any]:
    """Return what every answer shows: the search, its chips and its menus."""

    def address(text: str) -> str:
        return asked.url(query=text)

    window, windows = windows_of(asked.query, address)
    return {
        "asked": asked,
        "typed": asked.typed,
        "kept": list(asked.kept.items()),
        "ignored": asked.ignored,
        "chips": chips_of(asked.query, address),
        "cleared": asked.url(query=""),
        "window": window,
        "windows": windows,
        "columns": columns_of(asked),
        "most_columns": MOST,
        "longest_path": LONGEST_PATH,
        "paths_address": f"{reverse('studio:instance-paths')}?{urlencode(asked.parameters)}",
        "heads": heads_of(asked),
    }


def _topic(asked: ListAddress, found: finding.Page) -> str:
    shown = ",".join(str(instance.key) for instance in found.instances)
    given = {"topic": "list", **asked.parameters, "keys": shown}
    topic = urlencode(given if found.top is None else given | {"top": found.top})
    return topic if len(topic) <= LONGEST_QUERY else ""


def _narrower(asked: ListAddress, user: Any) -> list[tuple[str, str]]:
    """Return searches that read less: their names and addresses."""
    query = asked.query
    _, day, _ = WINDOWS[2]
    found = [("Last 24 h", asked.url(query=query.replaced("started", day)))]
    if query.replaced("workflow") == query.text:
        names = finding.busiest(user)
        found += [
            (f"Only {name}", asked.url(query=query.replaced("workflow", f"workflow:{name}")))
            for name in names
        ]
    return found
