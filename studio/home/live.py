"""The live view of home."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict

from engine.status.search import workflow_names
from engine.status.servers import all_servers
from studio.access.permissions import visible
from studio.display.rendering import render_to_string
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece
from studio.home.attention import attention
from studio.home.health import health
from studio.home.starts import address_of_starts, starts_of
from studio.instances.queries import rows_of
from studio.workflows.table import flow_table

WORKFLOWS = 6


@dataclass(frozen=True, slots=True)
class HomeView(LiveView):
    """Topic `home`."""

    topic: ClassVar[re.Pattern[str]] = re.compile("home")

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        return cls()

    def drawing(self, user: Any) -> Drawing:
        names = visible(user, workflow_names())
        needs = attention(names)
        context = {
            "flows": flow_table(names, most=WORKFLOWS),
            "starts": starts_of(user, names),
            "all_starts": address_of_starts(user),
            "attention": needs,
            "rows": rows_of(needs.instances),
            "health": health(needs, all_servers()),
        }
        return Drawing(
            {
                "health": Piece(render_to_string("studio/home/health.html", context)),
                "attention": Piece(render_to_string("studio/home/attention.html", context)),
                "workflow-table": Piece(render_to_string("studio/home/workflows.html", context)),
                "my-starts": Piece(render_to_string("studio/home/starts.html", context)),
            },
            is_personal=True,
        )
