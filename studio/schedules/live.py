"""The live view of schedules, for their page and for that of a workflow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict

from studio.access.permissions import Verb, allowed
from studio.display.rendering import render_to_string
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece
from studio.schedules import queries as timetable


@dataclass(frozen=True, slots=True)
class SchedulesView(LiveView):
    """Topic `schedules`."""

    topic: ClassVar[re.Pattern[str]] = re.compile("schedules")

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        return cls()

    def drawing(self, user: Any) -> Drawing:
        return Drawing({"schedules": timetable_piece(user)})


def timetable_piece(user: Any, workflow: str = "") -> Piece:
    """Render the schedules of a workflow, or of all workflows that a user may see."""
    may_act = allowed(user, Verb.OPERATE, workflow or None)
    seen = [one for one in timetable.entries(workflow) if allowed(user, Verb.VIEW, one.row.workflow)]
    context = {"schedules": seen, "workflow": workflow, "may_act": may_act}
    return Piece(render_to_string("studio/schedules/timetable.html", context))
