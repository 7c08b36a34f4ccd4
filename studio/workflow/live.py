"""The live view of one workflow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict

from engine.status.servers import capacity_of
from studio.access.permissions import Verb, allowed, sees_all
from studio.display.rendering import render_to_string
from studio.frame.addresses import WorkflowName, keys
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece
from studio.instances.live import row_pieces
from studio.instances.queries import rows_by_key
from studio.workflow.tabs import TABS, tab_of
from studio.workflows.queries import Overview, overviews


@dataclass(frozen=True, slots=True)
class WorkflowView(LiveView):
    """Topic `workflow:<name>`, with a tab, and the keys of the shown instances."""

    topic: ClassVar[re.Pattern[str]] = re.compile(rf"workflow:({WorkflowName.regex})")
    name: str
    shown: tuple[int, ...] = ()
    tab: str = ""

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        return cls(topic[1], tuple(keys(given.get("keys", ""), 100)), tab_of(given.get("tab", "")).name)

    @property
    def workflow(self) -> str | None:
        return self.name

    def drawing(self, user: Any) -> Drawing:
        (overview,) = overviews([self.name])
        pieces = head_pieces(overview, user)
        tab = tab_of(self.tab)
        if tab is TABS[0]:
            places = capacity_of([self.name]).get(self.name)
            counts = render_to_string(
                "studio/workflows/counts.html", {"overview": overview, "places": places}
            )
            pieces |= {"workflow-counts": Piece(counts), **row_pieces(rows_by_key(self.shown))}
        return Drawing(
            {**pieces, **tab.draw(overview, user)}, is_personal=tab.is_personal and not sees_all(user)
        )


def head_pieces(overview: Overview, user: Any) -> dict[str, Piece]:
    """Render what all pages of a workflow begin with: the button that pauses it, and who has paused it."""
    context = {"overview": overview, "may_act": allowed(user, Verb.OPERATE, overview.name)}
    return {
        "workflow-steer": Piece(render_to_string("studio/workflows/steer.html", context)),
        "workflow-pause": Piece(render_to_string("studio/workflows/paused.html", context)),
    }
