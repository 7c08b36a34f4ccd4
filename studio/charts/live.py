"""The live view of the charts. Each chart is a piece: its numbers, its sentence and its table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict

from engine.status.search import workflow_names
from studio.access.permissions import visible
from studio.charts.address import ChartsAddress
from studio.charts.drawn import NAMES, Chart, charts_of
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
        figures = figures_of(found.total, asked.range) if found else []
        flows = flows_of(found.by_workflow, asked) if found else []
        pieces = {
            "charts-figures": _piece("figures", frame | {"figures": figures}),
            "charts-flows": _piece("flows", frame | {"flows": flows}),
        }
        charts = {chart.name: chart for chart in charts_of(found, asked.range)} if found else {}
        for name in NAMES:
            pieces |= _pieces(name, charts.get(name))
        return Drawing(pieces)


def _pieces(name: str, chart: Chart | None) -> dict[str, Piece]:
    """Render a chart and its table, empty if it could not be read. Only the present changes often: it is on its own."""
    own = {"name": name, "chart": chart}
    now, then = (chart.rows[:1], chart.rows[1:]) if chart else ((), ())
    return {
        f"chart-{name}": _piece("chart", own),
        f"columns-{name}": _piece("columns", own),
        f"now-{name}": _piece("rows", own | {"id": f"now-{name}", "rows": now}),
        f"then-{name}": _piece("rows", own | {"id": f"then-{name}", "rows": then}),
    }


def _piece(template: str, context: dict[str, Any]) -> Piece:
    return Piece(render_to_string(f"studio/charts/{template}.html", context))
