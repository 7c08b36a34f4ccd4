"""Views as pages link to them: tabs above the list, and a few in the rail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from studio.access.permissions import Verb, allowed, rights
from studio.models import SavedView
from studio.saved_views import counts, queries
from studio.saved_views.built_in import ALL, BUILT_IN, BuiltIn
from studio.saved_views.opening import Opened, search_of
from studio.saved_views.rules import LONGEST_NAME, is_outdated
from studio.saved_views.search import Search

IN_RAIL = 5


@dataclass(frozen=True, slots=True)
class Tab:
    """A link to a view. `count` is its number if it was counted a moment ago; else it follows the page."""

    slug: str
    name: str
    kind: str  # built-in · shared · personal
    address: str
    search: Search
    count: str = ""
    is_current: bool = False
    is_outdated: bool = False

    @property
    def id(self) -> str:
        """What the ids of its elements end with."""
        return self.slug or "all"


@dataclass(frozen=True, slots=True)
class Bar:
    """What is above the search: the tabs, and what can be saved."""

    tabs: list[Tab]
    opened: Opened
    search: Search
    may_share: bool
    may_change: bool  # the view that is open
    longest_name: int = LONGEST_NAME

    @property
    def can_update(self) -> bool:
        return self.opened.saved is not None and self.opened.is_changed


def bar_of(user: Any, opened: Opened, search: Search) -> Bar:
    """Return the tabs of a person, with the view that is open."""
    slug, saved = opened.slug, opened.saved
    is_all = opened.view is None and search.is_empty
    shared, own = queries.shared_and_own(user)
    held = rights(user)
    views: list[SavedView | BuiltIn] = [ALL, *BUILT_IN, *shared, *own]
    tabs = [_tab(one, held, is_current=is_all if one is ALL else one.slug == slug) for one in views]
    return Bar(
        tabs=tabs,
        opened=opened,
        search=search,
        may_share=queries.may_share(user),
        may_change=saved is not None and queries.may_change(user, saved),
    )


def rail_of(user: Any, slug: str = "") -> list[Tab]:
    """Return the first views of a person, their own before shared ones. `slug` is the one that is open."""
    if not allowed(user, Verb.VIEW, None):
        return []
    held = rights(user)
    return [_tab(one, held, is_current=one.slug == slug) for one in in_rail(user)]


def in_rail(user: Any) -> list[SavedView]:
    return list(queries.seen_by(user).order_by("is_shared", "position", "key")[:IN_RAIL])


def address_of(slug: str) -> str:
    """Return the address of the list in a view."""
    given = f"?{urlencode({'view': slug})}" if slug else ""
    return f"{reverse('studio:instances')}{given}"


def _tab(view: SavedView | BuiltIn, held: frozenset[Verb], *, is_current: bool) -> Tab:
    search = search_of(view)
    return Tab(
        slug=view.slug,
        name=view.name,
        kind=_kind_of(view),
        address=address_of(view.slug),
        search=search,
        count=counts.known(search.query, held),
        is_current=is_current,
        is_outdated=is_outdated(search),
    )


def _kind_of(view: SavedView | BuiltIn) -> str:
    if isinstance(view, BuiltIn):
        return "built-in"
    return "shared" if view.is_shared else "personal"
