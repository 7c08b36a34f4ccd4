"""The live views of the table of workflows and of one workflow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict

from engine.status.search import workflow_names
from engine.status.servers import capacity_of
from studio.access.permissions import Verb, allowed, visible
from studio.display.rendering import render_to_string
from studio.frame.addresses import WorkflowName, keys
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece
from studio.instances.live import row_pieces
from studio.instances.queries import rows_by_key
from studio.schedules.live import timetable_piece
from studio.workflows.pauses import Pauses
from studio.workflows.queries import Overview, overviews


@dataclass(frozen=True, slots=True)
class WorkflowsView(LiveView):
    """Topic `workflows`."""

    topic: ClassVar[re.Pattern[str]] = re.compile("workflows")

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        return cls()

    def drawing(self, user: Any) -> Drawing:
        context = {
            "overviews": overviews(visible(user, workflow_names())),
            "may_start": allowed(user, Verb.OPERATE, None),
        }
        return Drawing({"workflow-table": Piece(render_to_string("studio/workflows/table.html", context))})


@dataclass(frozen=True, slots=True)
class WorkflowView(LiveView):
    """Topic `workflow:<name>`, with the keys of the shown instances."""

    topic: ClassVar[re.Pattern[str]] = re.compile(rf"workflow:({WorkflowName.regex})")
    name: str
    shown: tuple[int, ...] = ()

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        return cls(topic[1], tuple(keys(given.get("keys", ""), 100)))

    @property
    def workflow(self) -> str | None:
        return self.name

    def drawing(self, user: Any) -> Drawing:
        (overview,) = overviews([self.name])
        places = capacity_of([self.name]).get(self.name)
        may_act = allowed(user, Verb.OPERATE, self.name)
        context = {"overview": overview, "places": places, "pauses": _pauses(overview), "may_act": may_act}
        return Drawing(
            {
                "workflow-steer": Piece(render_to_string("studio/workflows/steer.html", context)),
                "workflow-pause": Piece(render_to_string("studio/workflows/paused.html", context)),
                "workflow-counts": Piece(render_to_string("studio/workflows/counts.html", context)),
                "schedules": timetable_piece(user, self.name),
                **row_pieces(rows_by_key(self.shown)),
            }
        )


def _pauses(overview: Overview) -> Pauses:
    return Pauses((overview.name,), (overview.pause,) if overview.pause is not None else ())
