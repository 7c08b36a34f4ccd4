"""Count what a search finds."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db.models import Count, QuerySet

from engine.models import Instance
from engine.status.searching.conditions import is_waiting_for_people
from engine.status.searching.searching import scope_of
from engine.values.query.terms import Names, Query
from engine.values.shown import display_status

CAP = 10_001


def count_by_status(query: Query, *, workflows: Collection[str] | None) -> dict[str, int] | None:
    """Count by shown status what a search finds, if an index finds it; None if it would have to look at all rows."""
    scope = scope_of(query, workflows)
    if scope.keys is None:
        return None
    found: dict[str, int] = {}
    groups = list(_grouped(scope.rows))
    for status, waiting_for, n in groups:
        shown = display_status(status, waiting_for)
        found[shown] = found.get(shown, 0) + n
    parked = any(status == "waiting" for status, _, _ in groups)
    for status, waiting_for, n in _grouped(scope.rows.filter(is_waiting_for_people())) if parked else ():
        found[display_status(status, waiting_for)] -= n
        found["approval"] = found.get("approval", 0) + n
    return {shown: n for shown, n in found.items() if n}


def _grouped(rows: QuerySet[Instance]) -> Iterable[tuple[str, str, int]]:
    return rows.order_by().values_list("status", "waiting_for").annotate(n=Count("key"))


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
