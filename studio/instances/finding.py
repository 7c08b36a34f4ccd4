"""What the list finds: a page of instances, what was searched for them, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.models import Instance
from engine.status.search import workflow_names
from engine.status.searching import counting, searching
from engine.status.searching.candidates import LookedUp, workflows_of
from engine.status.searching.found import Searched
from engine.values.query.order import NEWEST_FIRST, Place
from engine.values.query.parsing import parse
from studio.access.permissions import visible
from studio.frame.patience import TooSlowError, patience
from studio.frame.unchanged import Unchanged
from studio.instances.address import ListAddress
from studio.instances.queries import PAGE, rows_by_key
from studio.instances.status_counts import totals_by_status
from studio.instances.visibility import workflows_of_user

COUNT_PATIENCE_S = 1
MILLION = 1_000_000
NEWEST = 500
SEARCHES = 50  # whose counts are kept, at most

_counts = Unchanged[tuple[Mapping[str, int] | None]](most=SEARCHES)  # in a tuple: None is an answer, too


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the list. `newer`, `older` and `go_on` are places in it; empty if there is nothing there."""

    instances: list[Instance]
    newer: str
    older: str
    go_on: str
    hint: str  # a term with which an index finds all
    top: int | None  # the newest instance known to the first page, whose new ones are announced
    searched: str  # in words; empty if it needs no words


def page_of(asked: ListAddress, user: Any, looked_up: LookedUp | None = None) -> Page:
    """Read the page of an address, and keep in `looked_up` what its counts look up as well."""
    newest = Instance.objects.of_users().order_by("-key").values_list("key", flat=True).first() or 0
    found = searching.search(
        asked.query,
        workflows=workflows_of_user(user),
        sort=asked.sort,
        limit=PAGE,
        before=asked.before,
        after=asked.after,
        looked_up=looked_up,
    )
    is_first = not found.newer and not asked.before
    return Page(
        rows_by_key(found.keys),
        newer=found.newer,
        older=found.older,
        go_on=found.searched.go_on,
        hint=found.searched.hint,
        top=max([newest, *found.keys]) if is_first and asked.sort == NEWEST_FIRST else None,
        searched=_in_words(found.searched, asked, has_more=bool(found.older)),
    )


def counts_of(asked: ListAddress, user: Any, looked_up: LookedUp | None = None) -> Mapping[str, int] | None:
    """Count what the search finds by status, whatever status it asks for; None if no index can count it in time.

    Whatever its page, order and status, a search has the same counts: they are read once, until something is written.
    """
    query, workflows = parse(asked.query.replaced("status")), workflows_of_user(user)
    try:
        with patience(COUNT_PATIENCE_S):
            if not counting.names_only(query):
                key = (query.text, None if workflows is None else frozenset(workflows))
                return _counts.read(
                    key, lambda: (counting.count_by_status(query, workflows=workflows, looked_up=looked_up),)
                )[0]
            names = workflows_of(query.terms, workflow_names() if workflows is None else workflows)
            return totals_by_status(names)
    except TooSlowError:
        return None


def count_newer(asked: ListAddress, user: Any, key: int) -> int:
    """Count the instances that match and were started since, up to 99; 0 if that takes too long."""
    try:
        with patience(COUNT_PATIENCE_S):
            return counting.count_newer(asked.query, key, workflows=workflows_of_user(user))
    except TooSlowError:
        return 0


def busiest(user: Any, most: int = 3) -> list[str]:
    """Return the workflows that most of the newest instances are of."""
    newest = Instance.objects.of_users().order_by("-key").values_list("workflow", flat=True)[:NEWEST]
    return [name for name, _ in Counter(visible(user, newest)).most_common(most)]


def _in_words(searched: Searched, asked: ListAddress, *, has_more: bool) -> str:
    if searched.rows is None:
        return "" if has_more or asked.query.is_empty else "Searched all instances"
    done = "Searched" if asked.sort.is_by_start else "Sorted"
    of = f" of {_about(searched.of)}" if searched.of is not None else ""
    if Place.of(asked.before or asked.after):  # another page of the same window
        return f"{done} {searched.rows:,}{of}"
    if asked.before or asked.after:
        return f"{done} {searched.rows:,} more{of}"
    end = "oldest" if asked.sort.is_by_start and not asked.sort.is_descending else "newest"
    return f"{done} the {end} {searched.rows:,}{of}"


def _about(n: int) -> str:
    return f"{n / MILLION:.1f} M" if n >= MILLION else f"{n:,}"
