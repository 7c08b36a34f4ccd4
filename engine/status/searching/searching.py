"""Search instances: the one reader behind the list of the Studio, the command line and the API.

What an index answers is found over all rows. Everything else is looked for among the newest instances, in portions, up
to a number of rows and a time; the answer says how many were searched, and where to go on.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from django.db import connection
from django.db.models import Q, QuerySet

from engine.models import Instance
from engine.status.gathering import database_now
from engine.status.search import by_id, is_beginning, workflow_names
from engine.status.searching.bounds import span_of
from engine.status.searching.candidates import LookedUp, candidates, workflows_of
from engine.status.searching.conditions import has_key, row_condition
from engine.status.searching.found import Found, Searched
from engine.status.searching.indexed import indexed
from engine.status.searching.newest import is_newest_first, newest
from engine.status.searching.ordering import value_of
from engine.status.searching.span import Span
from engine.status.searching.windows import WINDOW, Portions, Seconds
from engine.values.query.order import NEWEST_FIRST, Place, Sort, key_of, window_of
from engine.values.query.terms import AtPath, Free, Ids, Moments, Names, Query, Statuses, Stored, System, Term
from engine.values.system import PREFIX

PAGE = 50
EXACTLY = 100_000  # up to so many instances are counted; the number of more is estimated
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Scope:
    """The rows that a search is about, before its order and pages."""

    terms: Sequence[Term]
    names: Sequence[str]
    is_limited: bool
    """Whether only these workflows may be seen."""
    is_for_system: bool
    """Whether the search is about Reprise's own workflows, and otherwise about all others."""
    keys: list[int] | None
    """All that can match, by an index; None if no index says so."""
    is_listed: bool
    """Whether the order of the table and the index of the lists are enough to find all."""
    span: Span

    @property
    def rows(self) -> QuerySet[Instance]:
        return self.rows_in(self.span)

    @property
    def seen(self) -> QuerySet[Instance]:
        """Return the rows that may be seen at all. No others are counted among those looked at, or there are."""
        if self.is_limited or self.is_for_system:
            return Instance.objects.filter(workflow__in=self.names)
        return Instance.objects.of_users()

    def portions(self, span: Span, *, is_down: bool, most: int) -> Portions:
        """Return the rows that may be seen within a part of the span, to be looked at."""
        is_all = not self.is_limited and not self.is_for_system
        unseen = Instance.objects.filter(workflow__startswith=PREFIX) if is_all else None
        return Portions(self.seen, span, unseen=unseen, is_down=is_down, most=most, time=Seconds())

    def rows_in(self, span: Span) -> QuerySet[Instance]:
        """Return the rows within a part of the span."""
        return self.rows_among(self.keys, span)

    def rows_among(self, keys: Sequence[int] | None, span: Span) -> QuerySet[Instance]:
        """Return the rows within a part of the span, of these keys."""
        rows = span.of(self.seen)
        if keys is not None:
            rows = rows.filter(has_key(keys))
        return rows.filter(*(row_condition(term, span) for term in self.terms))

    def first(self, limit: int) -> list[int] | None:
        """Return the keys of the newest rows, if the indexes of workflows and statuses find them soon; else None."""
        for keys, is_all in newest(self.terms, self.names):
            found = _keys(self.rows_among(keys, self.span), True, limit)
            if is_all or len(found) == limit:
                return found
        return None


def scope_of(
    query: Query,
    workflows: Collection[str] | None,
    *,
    is_first: bool = False,
    looked_up: LookedUp | None = None,
) -> Scope:
    """Prepare a search among the workflows that a user may see, or all.

    `is_first`: only the newest are asked for. What `Scope.first` can find is not looked up otherwise then.
    """
    names, known, is_for_system = list[str](), list[str](), query.is_for_system
    if query.terms or workflows is not None:
        known = workflow_names(of_system=is_for_system) if workflows is None else sorted(workflows)
        names = workflows_of(query.terms, known)
    is_everywhere = workflows is None and not is_for_system and len(names) == len(known)
    terms = [_by_id_or_error(term, None if is_everywhere else names) for term in query.terms]
    return Scope(
        terms=terms,
        names=names,
        is_limited=workflows is not None,
        is_for_system=is_for_system,
        keys=None if is_first and is_newest_first(terms) else candidates(terms, names, looked_up),
        is_listed=all(_is_listed(term) for term in terms),
        span=span_of(query.terms),
    )


def search(
    query: Query,
    *,
    workflows: Collection[str] | None,
    sort: Sort = NEWEST_FIRST,
    limit: int = PAGE,
    before: str = "",
    after: str = "",
    window: int = WINDOW,
    looked_up: LookedUp | None = None,
) -> Found:
    """Find a page of instances that meet all terms, and are among these workflows (None: all).

    `before` is the `older` or `go_on` of a page, `after` its `newer`: the page that follows it, or the one before it.
    Invalid cursors are those of the first page. The query must have no problems. What indexes find is kept in
    `looked_up`.
    """
    is_first = sort == NEWEST_FIRST and not before and not after
    scope = scope_of(query, workflows, is_first=is_first, looked_up=looked_up)
    if is_first and is_newest_first(scope.terms):
        found = scope.first(limit + 1)
        if found is not None:
            return _page(scope, found, None, limit, "", is_back=False)
        scope = replace(scope, keys=candidates(scope.terms, scope.names, looked_up))
    if not sort.is_by_start:
        return _sorted_page(scope, sort, limit, before, after, window)
    place = key_of(after or before)
    is_back = bool(after) and place is not None
    span = scope.span
    is_down = sort.is_descending is not is_back
    if place is not None:
        span = span.below(place) if is_down else span.above(place)
    portions = None
    if scope.keys is not None:
        keys = _first_of(scope, span, is_down, limit + 1)
    elif scope.is_listed:
        keys = _keys(scope.rows_in(span), is_down, limit + 1)
    else:
        portions = scope.portions(span, is_down=is_down, most=window)
        keys = portions.find(limit + 1, scope.rows_in)
    behind = "" if place is None else str(place - 1 if is_down else place + 1)
    return _page(scope, keys, portions, limit, behind, is_back=is_back)


def _page(
    scope: Scope, keys: list[int], portions: Portions | None, limit: int, behind: str, *, is_back: bool
) -> Found:
    """Return a page in the direction in which the keys were found. `behind` leads back to where the search has come
    from, and is empty at the beginning.
    """
    has_more, keys = len(keys) > limit, keys[:limit]
    go_on = "" if portions is None or has_more or portions.is_over else str(portions.reached)
    rows = portions.looked_at if go_on and portions else None
    last, first = (str(keys[-1]), str(keys[0])) if keys else ("", behind)
    if is_back:
        return Found(
            keys[::-1], older=first, newer=last if has_more else go_on, searched=_searched(scope, rows, "")
        )
    return Found(
        keys,
        older=last if has_more else "",
        newer=first if behind else "",
        searched=_searched(scope, rows, go_on),
    )


def _sorted_page(scope: Scope, sort: Sort, limit: int, before: str, after: str, window: int) -> Found:
    """Find a page in another order than that of the starts, among all candidates or in one window of keys."""
    place = Place.of(after or before)
    is_back = bool(after) and place is not None
    if place is not None:
        span, now_us = Span(place.low, place.top), place.now_us
    else:
        top, now_us = window_of(before), (database_now() - _EPOCH) // timedelta(microseconds=1)
        span = scope.span if top is None else scope.span.below(top)
        if scope.keys is None:
            span = scope.portions(span, is_down=True, most=window).whole()
    value = value_of(sort.by, now_us)
    rows = scope.rows_in(span).annotate(at=value).filter(at__isnull=False)
    is_down = sort.is_descending is not is_back
    if place is not None:
        beyond = "lt" if is_down else "gt"
        tie = Q(at=place.value) & Q(**{f"key__{beyond}": place.key})
        rows = rows.filter(Q(**{f"at__{beyond}": place.value}) | tie)
    order = ("-at", "-key") if is_down else ("at", "key")
    found = list(rows.order_by(*order).values_list("at", "key")[: limit + 1])
    has_more, found = len(found) > limit, found[:limit]
    if is_back:
        found = found[::-1]
    places = [str(Place(at, key, span.low, span.top, now_us)) for at, key in found]
    return Found(
        [key for _, key in found],
        older=places[-1] if places and (is_back or has_more) else "",
        newer=places[0] if places and (has_more if is_back else place is not None) else "",
        searched=_sorted(scope, span, is_back=is_back),
    )


def _sorted(scope: Scope, span: Span, *, is_back: bool) -> Searched:
    """Say how much was sorted: on each page of a window, so that the last one leads to the next window."""
    if scope.keys is not None or span.low <= scope.span.low:
        return Searched()
    rows = span.of(scope.seen).count()
    return _searched(scope, rows, "" if is_back else f"w{span.low}")


def _searched(scope: Scope, rows: int | None, go_on: str) -> Searched:
    return Searched() if rows is None else Searched(rows, _total(scope), go_on, _hint(scope))


def _hint(scope: Scope) -> str:
    """Return which workflow has an index for a path of the search."""
    wanted = {term.condition.name for term in scope.terms if isinstance(term.condition, AtPath)}
    with_index = {one.workflow for one in indexed(scope.names) if one.path in wanted and one.is_complete}
    return f"workflow:{min(with_index)}" if with_index and len(scope.names) > 1 else ""


def _total(scope: Scope) -> int:
    """Return the number of instances that may be seen: about how many if there are many."""
    if scope.is_limited or scope.is_for_system:
        counted = scope.seen[: EXACTLY + 1].count()
        return counted if counted <= EXACTLY else max(counted, _estimated(scope.seen))
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples::bigint FROM pg_class WHERE oid = 'engine_instance'::regclass")
        (estimate,) = cursor.fetchone()
    return int(estimate) if estimate > EXACTLY else scope.seen.count()


def _estimated(rows: QuerySet[Instance]) -> int:
    (plan,) = json.loads(rows.explain(format="json"))
    return int(plan["Plan"]["Plan Rows"])


def _keys(rows: QuerySet[Instance], is_down: bool, limit: int) -> list[int]:
    return list(rows.order_by("-key" if is_down else "key").values_list("key", flat=True)[:limit])


def _first_of(scope: Scope, span: Span, is_down: bool, limit: int) -> list[int]:
    """Return the first keys of the candidates that match: most do, so a few are looked at before all."""
    left = sorted((key for key in scope.keys or () if span.low <= key < span.top), reverse=is_down)
    found, size = list[int](), 4 * limit
    while left and len(found) < limit:
        part, left = left[:size], left[size:]
        found += _keys(scope.rows_among(part, span), is_down, limit - len(found))
        size *= 10
    return found


def _by_id_or_error(term: Term, names: Collection[str] | None) -> Term:
    """Read a free text as the beginning of an ID if these workflows (None: all) have one: an index finds it among all
    instances, whereas errors have to be looked at. IDs of workflows that a user may not see must decide nothing.
    """
    if not isinstance(term.condition, Free):
        return term
    text = term.condition.text
    seen = None if names is None else Instance.objects.filter(workflow__in=names)
    has_id = is_beginning(text) if seen is None else by_id(seen, text).exists()
    return replace(term, condition=Ids((text,))) if has_id else term


def _is_listed(term: Term) -> bool:
    """Tell whether the index of the lists and the order of the keys find it among all rows."""
    match term.condition:
        case Statuses() | Stored():
            return not term.is_negated
        case Names(field="workflow") | Moments(field="started") | System():
            return True
    return False
