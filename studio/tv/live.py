"""The live view of the wall screen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict

from engine.status.search import workflow_names
from studio.access.permissions import visible
from studio.display.rendering import render_to_string
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece
from studio.frame.sections import read
from studio.home.attention import attention
from studio.home.headline import headline
from studio.tv.board import board_of


@dataclass(frozen=True, slots=True)
class WallView(LiveView):
    """Topic `tv`."""

    topic: ClassVar[re.Pattern[str]] = re.compile("tv")
    seconds_between: ClassVar[float] = 2.0
    moves_by_itself: ClassVar[bool] = True  # workers that fall silent are no changes of instances

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        return cls()

    def drawing(self, user: Any) -> Drawing:
        names = visible(user, workflow_names())
        needs = read("what needs somebody", lambda: attention(names, user))
        board = read("the board", lambda: board_of(names))
        context = {
            "headline": headline(needs.found, has_workflows=bool(names)),
            "needs": len(needs.found.everything) if needs.found else 0,
            "section": board,
            "board": board.found,
        }
        return Drawing(
            {
                "tv-head": Piece(render_to_string("studio/tv/head.html", context)),
                "tv-board": Piece(render_to_string("studio/tv/board.html", context)),
            }
        )
