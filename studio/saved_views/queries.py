"""Find saved views: those that a person sees, and one by its slug."""

from __future__ import annotations

import re
from typing import Any

from django.db.models import Q, QuerySet

from studio.access.permissions import Verb, allowed
from studio.models import SavedView

_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")


def seen_by(user: Any) -> QuerySet[SavedView]:
    """Return the shared views and the personal ones of a person, in their order."""
    return SavedView.objects.filter(Q(is_shared=True) | Q(owner_id=user.pk)).order_by("position", "key")


def shared_and_own(user: Any) -> tuple[list[SavedView], list[SavedView]]:
    """Return the shared views, and the personal ones of a person."""
    views = list(seen_by(user).select_related("made_by"))
    return [one for one in views if one.is_shared], [one for one in views if not one.is_shared]


def find(slug: str) -> SavedView | None:
    """Return the view of a slug, whoever may open it; None if there is none, or if no view can have such a slug."""
    return SavedView.objects.filter(slug=slug).first() if _SLUG.fullmatch(slug) else None


def may_open(user: Any, view: SavedView) -> bool:
    return view.is_shared or view.owner_id == user.pk


def may_share(user: Any) -> bool:
    """Tell whether a person may make, change and delete shared views."""
    return allowed(user, Verb.OPERATE, None)


def may_change(user: Any, view: SavedView) -> bool:
    return may_share(user) if view.is_shared else view.owner_id == user.pk
