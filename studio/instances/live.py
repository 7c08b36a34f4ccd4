"""The live view of the list: its rows, and the counts above them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict
from django.urls import reverse

from engine.models import Instance
from engine.status.search import workflow_names
from engine.values.shown import GROUPS
from studio.display.rendering import render_to_string
from studio.display.status import LOOKS
from studio.frame.addresses import cursor, keys
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece, more_piece
from studio.instances import queries
from studio.instances.filters import Filter
from studio.instances.queries import rows_of
from studio.instances.status_counts import counts_among, counts_by_status

EVERYTHING = Filter()


@dataclass(frozen=True, slots=True)
class InstancesView(LiveView):
    """Topic `list`, with the filter, the keys of the rows, and on the newest page the key of the newest instance."""

    topic: ClassVar[re.Pattern[str]] = re.compile("list")
    wanted: Filter = EVERYTHING
    shown: tuple[int, ...] = ()
    top: int | None = None

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        shown = tuple(keys(given.get("keys", ""), 100))
        return cls(Filter.of(given), shown, cursor(given.get("top", "")))

    @property
    def workflow(self) -> str | None:
        return self.wanted.workflow or None

    def drawing(self, user: Any) -> Drawing:
        newer = queries.count_newer(self.wanted, self.top) if self.top is not None else 0
        above = above_list(self.wanted, newer, queries.narrowed(self.wanted))
        return Drawing({**above, **row_pieces(queries.rows_by_key(self.shown))})


def row_pieces(instances: Sequence[Instance]) -> dict[str, Piece]:
    return {
        f"i-{row.instance.key}": Piece(render_to_string("studio/instances/row.html", {"row": row}))
        for row in rows_of(instances)
    }


def above_list(wanted: Filter, newer: int, among: Sequence[int] | None) -> dict[str, Piece]:
    """Render what is above the rows: statuses with counts, and the number of new instances.

    A search is counted among the keys of `queries.narrowed`; without them it has no counts.
    """
    is_counted = among is not None or not wanted.q
    counts = strip_counts(wanted) if among is None else counts_among(wanted, among)
    strip = [
        {
            "name": name,
            "n": sum(counts.get(one, 0) for one in GROUPS.get(name, (name,))) if is_counted else None,
            "query": wanted.query(status=name),
            "is_chosen": name == wanted.status,
        }
        for name in (*GROUPS, *LOOKS)
        if counts.get(name) or name == wanted.status
    ]
    context = {"strip": strip, "wanted": wanted, "all_query": wanted.query(status="")}
    return {
        "strip": Piece(render_to_string("studio/instances/strip.html", context)),
        "more": more_piece(newer, reverse("studio:instances") + wanted.query()),
    }


def strip_counts(wanted: Filter) -> dict[str, int]:
    """Count by status, for the workflow of the filter or for all."""
    names = [wanted.workflow] if wanted.workflow else workflow_names()
    total: dict[str, int] = {}
    for counts in counts_by_status(names).values():
        for status, n in counts.items():
            total[status] = total.get(status, 0) + n
    return total
