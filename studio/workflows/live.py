"""The live view of the table of workflows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict

from engine.status.search import workflow_names
from studio.access.permissions import Verb, allowed, visible
from studio.display.rendering import render_to_string
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece
from studio.frame.unchanged import Unchanged
from studio.workflows.table import FlowTable, flow_table

SETS = 20  # of workflows whose tables are kept, at most

_tables = Unchanged[FlowTable](most=SETS)


@dataclass(frozen=True, slots=True)
class WorkflowsView(LiveView):
    """Topic `workflows`."""

    topic: ClassVar[re.Pattern[str]] = re.compile("workflows")

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        return cls()

    def drawing(self, user: Any) -> Drawing:
        names = visible(user, workflow_names())
        context = {
            "flows": _tables.read(frozenset(names), lambda: flow_table(names)),
            "may_start": allowed(user, Verb.OPERATE, None),
        }
        return Drawing({"workflow-table": Piece(render_to_string("studio/workflows/table.html", context))})
