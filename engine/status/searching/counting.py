"""Count what a search finds."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from engine.models import Instance
from engine.status.searching.candidates import LookedUp
from engine.status.searching.searching import scope_of
from engine.steer.requests import open_requests
from engine.values.query.terms import Names, Query
from engine.values.shown import display_status

CAP = 10_001


def count_by_status(
    query: Query, *, workflows: Collection[str] | None, looked_up: LookedUp | None = None
) -> dict[str, int] | None:
    """Count by shown status what a search finds, if an index finds it; None if it would have to look at all rows."""
    scope = scope_of(query, workflows, looked_up=looked_up)
    if scope.keys is None:
        return None
    found: dict[str, int] = {}
    for status, waiting_for, n, asking in _grouped(scope.rows):
        for shown, more in ((display_status(status, waiting_for), n - asking), ("approval", asking)):
            found[shown] = found.get(shown, 0) + more
    return {shown: n for shown, n in found.items() if n}


def _grouped(rows: QuerySet[Instance]) -> Iterable[tuple[str, str, int, int]]:
    """Count the rows by status, and those of them that wait for people, in one pass."""
    is_asking = Exists(open_requests().filter(instance_id=OuterRef("key")))
    asking = Count("key", filter=Q(status="waiting") & Q(is_asking))
    return rows.order_by().values_list("status", "waiting_for").annotate(n=Count("key"), asking=asking)


def count_newer(query: Query, key: int, *, workflows: Collection[str] | None, cap: int = 99) -> int:
    """Count what a search would find that has started since, up to the cap."""
    scope = scope_of(query, workflows)
    span = scope.span.above(key)
    return scope.rows_in(span).order_by()[:cap].count()


def names_only(query: Query) -> bool:
    """Tell whether a search only names workflows, so that the counts of these are its counts."""
    return all(
        isinstance(term.condition, Names) and term.condition.field == "workflow" for term in query.terms
    )
