"""The live views of the list and of an error, and the count of open groups that every page shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict

from studio.access.permissions import sees_all
from studio.display.rendering import render_to_string
from studio.errors import groups, page
from studio.errors.address import ErrorAddress, ListAddress
from studio.errors.visibility import count_open
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece

_FINGERPRINT = re.compile(r"[0-9a-f]{16}")
_PIECES = (
    "head",
    "state",
    "steer",
    "going",
    "scope",
    "figures",
    "chart",
    "common",
    "trace",
    "notes",
    "instances",
)


@dataclass(frozen=True, slots=True)
class ErrorsView(LiveView):
    """Topic `errors`, with the filter, the place, and the fingerprints of the shown rows."""

    topic: ClassVar[re.Pattern[str]] = re.compile("errors")
    asked: ListAddress
    shown: tuple[str, ...] = ()

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        parts = given.get("shown", "").split(",")[: groups.PAGE]
        shown = tuple(part for part in parts if _FINGERPRINT.fullmatch(part))
        asked = given.copy()
        for name in ("topic", "shown"):
            asked.pop(name, None)
        return cls(ListAddress.of(asked), shown)

    def drawing(self, user: Any) -> Drawing:
        return draw_errors(self.asked, groups.page_of(self.asked, user, self.shown), user)


def draw_errors(asked: ListAddress, found: groups.Page, user: Any) -> Drawing:
    """Render the list for a user."""
    context = {"asked": asked, "rows": found.rows, "has_any": found.has_any, "open": count_open(user)}
    pieces = {
        f"errors-{name}": Piece(render_to_string(f"studio/errors/pieces/{name}.html", context))
        for name in ("tabs", "list")
    }
    return Drawing(pieces, is_personal=not sees_all(user))


@dataclass(frozen=True, slots=True)
class ErrorView(LiveView):
    """Topic `error:<fingerprint>`, with what its address asks for."""

    topic: ClassVar[re.Pattern[str]] = re.compile(r"error:([0-9a-f]{16})")
    asked: ErrorAddress

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        asked = given.copy()
        asked.pop("topic", None)
        return cls(ErrorAddress.of(topic[1], asked))

    def drawing(self, user: Any) -> Drawing:
        """Render the page; nothing if the group was deleted."""
        found = page.read(self.asked, user)
        return draw_error(found, user) if found is not None else Drawing({}, is_done=True)


def draw_error(found: page.ErrorPage, user: Any) -> Drawing:
    """Render an error for a user."""
    context = {"d": found, "asked": found.asked, "may_act": found.may_act}
    pieces = {
        f"error-{name}": Piece(render_to_string(f"studio/errors/pieces/{name}.html", context))
        for name in _PIECES
    }
    return Drawing(pieces, is_personal=not sees_all(user), say=f"This error is now {found.state}")


def count_piece(user: Any) -> dict[str, Piece]:
    """Render the number of open groups; every page shows it."""
    count = render_to_string("studio/errors/count.html", {"count": count_open(user)})
    return {"errors-count": Piece(count)}
