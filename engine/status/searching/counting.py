"""Count what a search finds."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Count, Exists, OuterRef

from engine.status.searching.searching import scope_of
from engine.steer.requests import open_requests
from engine.values.query.terms import Names, Query
from engine.values.shown import display_status

CAP = 10_001


def count_by_status(query: Query, *, workflows: Collection[str] | None) -> dict[str, int] | None:
    """Count by shown status what a search finds, if an index finds it; None if it would have to look at all rows."""
    scope = scope_of(query, workflows)
    if scope.keys is None:
        return None
    asks = Exists(open_requests().filter(instance_id=OuterRef("key")))
    rows = (
        scope.rows.annotate(asks=asks).values_list("status", "waiting_for", "asks").annotate(n=Count("key"))
    )
    found: dict[str, int] = {}
    for status, waiting_for, is_asking, n in rows.order_by():
        shown = display_status(status, waiting_for, asks=is_asking)
        found[shown] = found.get(shown, 0) + n
    return found


def count_newer(query: Query, key: int, *, workflows: Collection[str] | None, cap: int = 99) -> int:
    """Count what a search would find that has started since, up to the cap."""
    scope = scope_of(query, workflows)
    span = scope.span.above(key)
    return scope.rows.filter(key__gte=span.low, key__lt=span.top).order_by()[:cap].count()


def names_only(query: Query) -> bool:
    """Tell whether a search only names workflows, so that the counts of these are its counts."""
    return all(
        isinstance(term.condition, Names) and term.condition.field == "workflow" for term in query.terms
    )
