"""The live view of the list: its rows, and what is above them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from django.http import QueryDict

from engine.models import Instance
from engine.values.query.terms import Query, Statuses, Term
from engine.values.shown import GROUPS, SHOWN
from studio.access.permissions import sees_all
from studio.display.rendering import render_to_string
from studio.frame.addresses import cursor, keys
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece, more_piece
from studio.instances import finding
from studio.instances.address import ListAddress
from studio.instances.columns import Path
from studio.instances.queries import rows_by_key, rows_of


@dataclass(frozen=True, slots=True)
class InstancesView(LiveView):
    """Topic `list`, with the search, the keys of the rows, and on the first page the key of the newest instance."""

    topic: ClassVar[re.Pattern[str]] = re.compile("list")
    asked: ListAddress
    shown: tuple[int, ...] = ()
    top: int | None = None

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        shown = tuple(keys(given.get("keys", ""), 100))
        return cls(replace(ListAddress.of(given), ignored=()), shown, cursor(given.get("top", "")))

    def drawing(self, user: Any) -> Drawing:
        newer = 0 if self.top is None else finding.count_newer(self.asked, user, self.top)
        above = above_list(self.asked, newer, finding.counts_of(self.asked, user))
        rows = row_pieces(rows_by_key(self.shown), self.asked.columns, is_list=True)
        return Drawing({**above, **rows}, is_personal=not sees_all(user))


def row_pieces(
    instances: Sequence[Instance], columns: Sequence[Path] = (), *, is_list: bool = False
) -> dict[str, Piece]:
    return {
        f"i-{row.instance.key}": Piece(render_to_string("studio/instances/row.html", {"row": row}))
        for row in rows_of(instances, columns, is_list=is_list)
    }


def above_list(asked: ListAddress, newer: int, counts: Mapping[str, int] | None) -> dict[str, Piece]:
    """Render what is above the rows: statuses with counts, if they are known, and the number of new instances."""
    return {"strip": strip_piece(asked, counts), "more": more_piece(newer, asked.url())}


def strip_piece(asked: ListAddress, counts: Mapping[str, int] | None) -> Piece:
    chosen = _chosen(asked.query)
    strip = [
        {
            "name": name,
            "is_group": name in GROUPS,
            "n": None if counts is None else sum(counts.get(one, 0) for one in GROUPS.get(name, (name,))),
            "address": asked.url(query=asked.query.replaced("status", f"status:{name}")),
            "is_chosen": name in chosen,
        }
        for name in (*GROUPS, *SHOWN)
    ]
    context = {
        "strip": strip,
        "is_all": not chosen,
        "is_counted": counts is not None,
        "counted": _what_is_counted(asked.query, counts),
        "total": _matching(asked.query, counts or {}),
        "all_address": asked.url(query=asked.query.replaced("status")),
    }
    return Piece(render_to_string("studio/instances/strip.html", context))


def _what_is_counted(query: Query, counts: Mapping[str, int] | None) -> str:
    """Say what the numbers of the statuses count."""
    if counts is None:
        return "Not counted by status: that would take too long for this search"
    if query.replaced("status"):
        return "How many instances of this search have each status"
    return "How many instances have each status"


def _matching(query: Query, counts: Mapping[str, int]) -> int:
    """Return how many the search finds, from the counts of all statuses."""
    asked = [term for term in query.terms if isinstance(term.condition, Statuses)]
    return sum(
        (n for name, n in counts.items() if all(_has(term, name) for term in asked)),
        start=0,
    )


def _has(term: Term, status: str) -> bool:
    return isinstance(term.condition, Statuses) and (status in term.condition.names) != term.is_negated


def _chosen(query: Query) -> set[str]:
    """Return the statuses that the search asks for: those of a group as the group."""
    terms = [term.condition for term in query.terms if not term.is_negated]
    names = {name for one in terms if isinstance(one, Statuses) for name in one.names}
    return next(({group} for group, of in GROUPS.items() if names == set(of)), names)
