"""Open the view that an address of the list names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.http import QueryDict

from studio.models import SavedView
from studio.saved_views import queries
from studio.saved_views.built_in import BY_SLUG, BuiltIn
from studio.saved_views.rules import is_outdated
from studio.saved_views.search import Search

GONE = "This view no longer exists."
PERSONAL = "This view is personal: only the person who saved it can open it."
OUTDATED = "The search of this view is not understood any more. Fix it, then save it again."


@dataclass(frozen=True, slots=True)
class Opened:
    """What an address asks for. `given` has the search of the view, or the one that began as it and was changed."""

    given: QueryDict
    view: SavedView | BuiltIn | None = None
    banner: str = ""

    @property
    def slug(self) -> str:
        return self.view.slug if self.view is not None else ""

    @property
    def saved(self) -> SavedView | None:
        """The view, if people have made it."""
        return self.view if isinstance(self.view, SavedView) else None

    @property
    def search(self) -> Search:
        return Search.of(self.given)

    @property
    def is_changed(self) -> bool:
        """Whether the address has another search than the view."""
        return self.view is not None and self.search != search_of(self.view)


def open_view(given: QueryDict, user: Any) -> Opened:
    """Return what an address of the list asks for.

    `?view=<slug>` alone asks for what the view has saved. With `query` in it, the address says all, and the view only
    where the search began. A view that is gone or personal falls back to All, with a banner.
    """
    slug = given.get("view", "")
    if not slug:
        return Opened(given)
    view = BY_SLUG.get(slug) or queries.find(slug)
    if view is None or (isinstance(view, SavedView) and not queries.may_open(user, view)):
        return _without_view(given, GONE if view is None else PERSONAL)
    if "query" in given:
        return Opened(given, view)
    search = search_of(view)
    filled = given.copy()
    for name, value in search.fields.items():
        filled[name] = value
    return Opened(filled, view, OUTDATED if is_outdated(search) else "")


def search_of(view: SavedView | BuiltIn) -> Search:
    return Search.of_view(view) if isinstance(view, SavedView) else view.search


def _without_view(given: QueryDict, banner: str) -> Opened:
    left = given.copy()
    del left["view"]
    opened = Opened(left)
    shown = "All instances are shown." if opened.search.is_empty else "The search in the address is shown."
    return replace(opened, banner=f"{banner} {shown}")
