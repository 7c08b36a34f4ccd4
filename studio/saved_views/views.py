"""The page of saved views, and what its forms and those of the list send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified, HttpResponseRedirect
from django.urls import reverse

from engine.status.sentences.bidi import isolated
from studio.access.permissions import Verb
from studio.frame.addresses import ignored
from studio.frame.guard import guard
from studio.frame.notes import note
from studio.frame.pieces import Drawing, HtmxRequest, Piece, frame_of, page
from studio.models import SavedView
from studio.saved_views import counts, queries, saving
from studio.saved_views.built_in import ALL, BUILT_IN, BuiltIn
from studio.saved_views.form import Typed
from studio.saved_views.opening import search_of
from studio.saved_views.rules import LONGEST_NAME, InvalidViewError, is_outdated
from studio.saved_views.search import Search
from studio.saved_views.tabs import address_of, in_rail

TEMPLATE = "studio/views/views.html"


@guard(get=Verb.VIEW, post=Verb.VIEW)
def saved_views(request: HttpRequest) -> HttpResponse:
    """List the views that a person sees, or save a new one."""
    if request.method != "POST":
        return _page(request, going=request.GET.get("delete", ""))
    typed = Typed.of(request.POST)
    try:
        view = saving.save(typed.name, typed.search, by=request.user, is_shared=typed.is_shared)
    except InvalidViewError as error:
        typed = Typed.of(request.POST, {error.field: str(error)})
        return _page(request, status=422, typed=typed, refused="Not saved: fix the field below.")
    whose = " for everyone who may view" if view.is_shared else ""
    note(request, f"Saved {isolated(view.name)}{whose}.")
    return HttpResponseRedirect(address_of(view.slug))


@guard(post=Verb.VIEW)
def rename(request: HttpRequest, slug: str) -> HttpResponse:
    view, name = _view_of(request, slug), request.POST.get("name", "")
    before = view.name
    refused = _refusal(lambda: saving.rename(view, name, by=request.user))
    if refused:
        return _page(request, status=422, refused=f"{before} was not renamed. {refused}")
    note(request, f"Renamed {isolated(before)} to {isolated(view.name)}.")
    return HttpResponseRedirect(reverse("studio:saved-views"))


@guard(post=Verb.VIEW)
def update(request: HttpRequest, slug: str) -> HttpResponse:
    """Save the search that is shown in the view from which it began."""
    view, search = _view_of(request, slug), Search.of(request.POST)
    refused = _refusal(lambda: saving.update(view, search, by=request.user))
    if refused:
        return _page(request, status=422, refused=f"{isolated(view.name)} was not changed. {refused}")
    note(request, f"Saved the search in {isolated(view.name)}.")
    return HttpResponseRedirect(address_of(view.slug))


@guard(post=Verb.VIEW)
def move(request: HttpRequest, slug: str) -> HttpResponse:
    saving.move(_view_of(request, slug), by=request.user, is_up=request.POST.get("to") == "up")
    return HttpResponseRedirect(reverse("studio:saved-views"))


@guard(post=Verb.VIEW)
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    view = _view_of(request, slug)
    saving.delete(view, by=request.user)
    note(request, f"Deleted {isolated(view.name)}. Its links lead to all instances.")
    return HttpResponseRedirect(reverse("studio:saved-views"))


@guard(get=Verb.VIEW)
def view_counts(request: HtmxRequest) -> HttpResponse:
    """Answer with the numbers of the views in the rail, and with those of all tabs if the page has them."""
    rail = in_rail(request.user)
    tabs: list[SavedView | BuiltIn] = []
    if "tabs" in request.GET:
        shared, own = queries.shared_and_own(request.user)
        tabs = [ALL, *BUILT_IN, *shared, *own]
    texts = counts.counted([search_of(one).query for one in (*rail, *tabs)], request.user)
    numbers = {f"rail-n-{one.slug}": texts[one.query] for one in rail}
    numbers |= {f"view-n-{one.slug or 'all'}": texts[search_of(one).query] for one in tabs}
    drawing = Drawing({name: Piece(text, "textContent") for name, text in numbers.items()})
    if request.htmx.ptag == drawing.tag:
        return HttpResponseNotModified()
    return HttpResponse(frame_of(drawing), headers={"HX-PTag": drawing.tag})


def _view_of(request: HttpRequest, slug: str) -> SavedView:
    """Return a view that this person sees. One that they do not see is not there for them."""
    view = queries.find(slug)
    if view is None or not queries.may_open(request.user, view):
        raise Http404
    return view


def _refusal(change: Callable[[], None]) -> str:
    """Make a change. Return why it cannot be made; empty if it was made."""
    try:
        change()
    except InvalidViewError as error:
        return str(error)
    except SavedView.DoesNotExist:
        raise Http404 from None
    return ""


def _page(
    request: HttpRequest,
    *,
    status: int = 200,
    typed: Typed | None = None,
    refused: str = "",
    going: str = "",
) -> HttpResponse:
    shared, own = queries.shared_and_own(request.user)
    may_share = queries.may_share(request.user)
    context: dict[str, Any] = {
        "shared": [_line(one, may_share) for one in shared],
        "own": [_line(one, True) for one in own],
        "going": next((one for one in (*shared, *own) if going and one.slug == going), None),
        "is_gone": bool(going) and going not in {one.slug for one in (*shared, *own)},
    }
    return page(
        request,
        TEMPLATE,
        status=status,
        typed=typed,
        refused=refused,
        ignored=ignored(request.GET, ("delete",)),
        may_share=may_share,
        longest_name=LONGEST_NAME,
        **context,
    )


def _line(view: SavedView, may_change: bool) -> dict[str, Any]:
    return {
        "view": view,
        "address": address_of(view.slug),
        "may_change": may_change,
        "is_outdated": is_outdated(search_of(view)),
    }
