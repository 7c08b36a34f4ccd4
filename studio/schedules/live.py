"""The live views of schedules: their list, for their page and for that of a workflow, and their week."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Self

from django.http import QueryDict
from django.utils.http import urlencode

from engine.models import ScheduleRow
from studio.access.permissions import Verb, allowed
from studio.display.rendering import render_to_string
from studio.frame.icons import icons_address
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece
from studio.schedules import queries as timetable
from studio.schedules import ran
from studio.schedules.week import MOST, week_of
from studio.schedules.week_address import VIEW, WeekAddress, name_of

DAY, WEEK = timedelta(days=1), timedelta(days=7)


@dataclass(frozen=True, slots=True)
class SchedulesView(LiveView):
    """Topic `schedules`: the list, or a week."""

    topic: ClassVar[re.Pattern[str]] = re.compile("schedules")
    week: WeekAddress | None = None

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        return cls.asked(given)

    @classmethod
    def asked(cls, given: QueryDict) -> Self:
        """Return the view that an address asks for."""
        return cls(WeekAddress.of(given) if given.get("view") == VIEW else None)

    @property
    def query(self) -> str:
        """The query string of its topic."""
        return urlencode({"topic": "schedules", **(self.week.parameters if self.week else {})})

    def drawing(self, user: Any) -> Drawing:
        if self.week is None:
            return Drawing({"schedules": timetable_piece(user)})
        return Drawing(week_pieces(user, self.week))


def timetable_piece(user: Any, workflow: str = "") -> Piece:
    """Render the schedules of a workflow, or of all workflows that a user may see."""
    may_act = allowed(user, Verb.OPERATE, workflow or None)
    seen = [one for one in timetable.entries(workflow) if allowed(user, Verb.VIEW, one.row.workflow)]
    context = {"schedules": seen, "workflow": workflow, "may_act": may_act}
    return Piece(render_to_string("studio/schedules/timetable.html", context))


def week_pieces(user: Any, asked: WeekAddress) -> dict[str, Piece]:
    """Render a week of the schedules of a workflow, or of all workflows that a user may see."""
    week = week_of(asked, seen_by(user, asked.workflow))
    monday = asked.monday_at(week.now)
    context = {
        "week": week,
        "asked": asked,
        "monday": monday,
        "sunday": monday + WEEK - DAY,
        "number": name_of(monday).partition("-W")[2],
        "before": asked.at(monday - WEEK),
        "present": asked.at(None),
        "after": asked.at(monday + WEEK),
        "is_present": any(day.is_today for day in week.days),
        "most": MOST,
        "most_runs": ran.MOST_RUNS,
    }
    pieces = {"week-head": Piece(render_to_string("studio/schedules/week-head.html", context))}
    for day in week.days:
        html = render_to_string("studio/schedules/day.html", {"day": day, "sprite": icons_address()})
        pieces[f"week-day-{day.number}"] = Piece(html)
    return pieces


def seen_by(user: Any, workflow: str = "") -> list[ScheduleRow]:
    """Read the schedules of a workflow, or of all workflows that a user may see."""
    return [row for row in timetable.rows_of(workflow) if allowed(user, Verb.VIEW, row.workflow)]
