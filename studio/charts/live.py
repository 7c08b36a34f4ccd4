"""The live view of the charts. Each chart is a piece: its numbers, its sentence and its table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict

from engine.status.search import workflow_names
from studio.access.permissions import visible
from studio.charts.address import ChartsAddress
from studio.charts.drawn import charts_of
from studio.charts.figures import figures_of, flows_of
from studio.charts.numbers import numbers_of
from studio.display.rendering import render_to_string
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece
from studio.frame.sections import read


@dataclass(frozen=True, slots=True)
class ChartsView(LiveView):
    """Topic `charts`, with a range and a workflow."""

    topic: ClassVar[re.Pattern[str]] = re.compile("charts")
    seconds_between: ClassVar[float] = 5.0  # nobody sees more of a minute
    moves_by_itself: ClassVar[bool] = True  # time goes on also if nothing happens
    asked: ChartsAddress

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        return cls(ChartsAddress.of(given))

    def drawing(self, user: Any) -> Drawing:
        names = visible(user, workflow_names())
        asked = self.asked.among(names)
        numbers = read("the counts", lambda: numbers_of(asked, names))
        found = numbers.found
        frame = {"asked": asked, "numbers": numbers, "again": asked.address}
        parts: dict[str, tuple[str, dict[str, Any]]] = {
            "charts-figures": ("figures", {"figures": figures_of(found.total, asked.range) if found else []}),
            "charts-flows": ("flows", {"flows": flows_of(found.by_workflow, asked) if found else []}),
        }
        for chart in charts_of(found, asked.range) if found else ():
            parts[f"chart-{chart.name}"] = ("chart", {"chart": chart})
        return Drawing(
            {
                name: Piece(render_to_string(f"studio/charts/{part}.html", frame | own))
                for name, (part, own) in parts.items()
            }
        )
