"""The plain filters of the command line and the API, as terms of a search."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from engine.values.query.terms import Bound, Condition, Ids, Moments, Names, Pattern, Query, Stored, Term
from engine.values.states import FINAL, InstanceStatus

GROUPS: Mapping[str, Sequence[str]] = {"open": sorted(set(InstanceStatus) - FINAL), "finished": sorted(FINAL)}


def filtered(
    query: Query,
    *,
    workflow: str | None = None,
    statuses: Sequence[str] | None = None,
    tag: str | None = None,
    q: str | None = None,
    after: datetime | None = None,
    before: datetime | None = None,
) -> Query:
    """Return the search with the filters that are given."""
    found = list[Condition]()
    if workflow is not None:
        found.append(Names("workflow", (Pattern(workflow),)))
    if statuses:
        found.append(Stored(tuple(stored(statuses))))
    if tag is not None:
        found.append(Names("tag", (Pattern(tag),)))
    if q is not None:
        found.append(Ids((q,)))
    if after is not None or before is not None:
        found.append(
            Moments(
                "started",
                None if after is None else Bound(after, is_inclusive=False),
                None if before is None else Bound(before, is_inclusive=False),
            )
        )
    return replace(query, terms=(*query.terms, *(Term(one, False, "", 0, 0) for one in found)))


def stored(statuses: Collection[str]) -> list[str]:
    """Return stored statuses, with those of the groups `open` and `finished`."""
    return sorted({str(status) for one in statuses for status in GROUPS.get(one, (one,))})
