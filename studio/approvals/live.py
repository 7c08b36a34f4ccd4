"""The live view of the inbox, and the count of requests that every page shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict

from studio.approvals import queries as inbox
from studio.approvals.entry import Entry
from studio.display.rendering import render_to_string
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece


@dataclass(frozen=True, slots=True)
class ApprovalsView(LiveView):
    """Topic `approvals`, with the box and the selected request."""

    topic: ClassVar[re.Pattern[str]] = re.compile("approvals")
    box: str
    ref: str = ""

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        box = given.get("box", "")
        return cls(box if box in inbox.BOXES else "mine", given.get("r", "")[:50])

    def drawing(self, user: Any) -> Drawing:
        shown = inbox.entry_of(self.ref, user) if self.ref else None
        return draw_approvals(inbox.box_of(self.box, user), shown, mine=inbox.count_mine(user))


def draw_approvals(box: inbox.Box, shown: Entry | None, *, mine: int) -> Drawing:
    """Render a user's inbox, with one request next to the list. `mine` is what `count_mine` returns."""
    context = {
        "box": box,
        "entry": shown,
        "place": box.name,
        "mine": mine,
        "open": inbox.count_open(),
        "most": inbox.COUNTED,
    }
    pieces = {
        name: Piece(render_to_string(f"studio/approvals/{name}.html", context))
        for name in ("boxes", "inbox", "pane")
    }
    return Drawing(pieces, is_personal=True, forms=(shown.ref,) if shown else ())


def count_piece(user: Any) -> dict[str, Piece]:
    """Render the number of requests that wait for this user; every page shows it."""
    count = inbox.count_mine(user)
    return {"approvals-count": Piece(render_to_string("studio/approvals/count.html", {"count": count}))}
