"""What the list finds: a page of instances, what was searched for them, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.models import Instance
from engine.status.search import workflow_names
from engine.values.shown import display_status
from studio.access.permissions import sees_all, visible
from studio.instances import standin
from studio.instances.address import ListAddress


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the list. `newer`, `older` and `go_on` are places in it; empty if there is nothing there."""

    instances: list[Instance]
    newer: str
    older: str
    go_on: str
    top: int  # key of the newest instance of all, when the page was read; 0 without one
    searched: str  # in words; empty if everything is listed


def page_of(asked: ListAddress, user: Any) -> Page:
    """Read the page of an address."""
    found = standin.search(asked.query, names_for(user), asked.sort, asked.before, asked.after)
    return Page(found.instances, found.newer, found.older, "", found.top, found.said)


def counts_of(asked: ListAddress, user: Any) -> Mapping[str, int] | None:
    """Count what the search finds by status, whatever status it asks for; None if that takes too long."""
    from engine.values.query.parsing import parse

    rows = standin._rows(parse(asked.query.replaced("status")))
    return Counter(display_status(s, w) for s, w in rows.values_list("status", "waiting_for"))


def count_newer(asked: ListAddress, user: Any, key: int) -> int:
    """Count the instances that match and were started since."""
    return int(standin._rows(asked.query).filter(key__gt=key).count())


def names_for(user: Any) -> list[str] | None:
    """Return the workflows that a user may see; None if that is all."""
    return None if sees_all(user) else visible(user, workflow_names())
