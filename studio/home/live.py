"""The live view of home."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict

from engine.status.failures.failing import CAP
from engine.status.search import workflow_names
from studio.access.permissions import visible
from studio.display.rendering import render_to_string
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece
from studio.frame.sections import read
from studio.frame.unchanged import one_look
from studio.home.attention import WHO, attention, home_address
from studio.home.facts import flows_of
from studio.home.flow_rows import flow_row
from studio.home.headline import headline
from studio.home.rows import row
from studio.home.starts import address_of_starts, starts_of


@dataclass(frozen=True, slots=True)
class HomeView(LiveView):
    """Topic `home`, of everything or of what is the user's."""

    topic: ClassVar[re.Pattern[str]] = re.compile("home")
    seconds_between: ClassVar[float] = 0.8  # each person has a drawing of their own
    shares_reading: ClassVar[bool] = True
    who: str = ""

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        return cls.asked(given)

    @classmethod
    def asked(cls, given: QueryDict) -> Self:
        """Return the view that an address asks for."""
        who = given.get("who", "")
        return cls(who if who in WHO else "")

    def drawing(self, user: Any) -> Drawing:
        with one_look():
            context = self._context(user)
        return Drawing(
            {
                "home-head": Piece(render_to_string("studio/home/head.html", context)),
                "attention": Piece(render_to_string("studio/home/attention.html", context)),
                "workflow-table": Piece(render_to_string("studio/home/workflows.html", context)),
                "my-starts": Piece(render_to_string("studio/home/starts.html", context)),
            },
            is_personal=True,
        )

    def _context(self, user: Any) -> dict[str, Any]:
        names = visible(user, workflow_names())
        section = read("what needs you", lambda: attention(names, user, self.who))
        flows = flows_of(names)
        return {
            "section": section,
            "again": home_address(self.who),
            "attention": section.found,
            "rows": [row(group) for group in section.found.shown] if section.found else [],
            "headline": headline(section.found, has_workflows=bool(names)),
            "who": self.who,
            "newest": CAP - 1,
            "flows": flows,
            "flow_rows": [flow_row(one) for one in flows],
            "starts": starts_of(user, names),
            "all_starts": address_of_starts(user),
        }
