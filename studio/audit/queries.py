"""Read the audit trail: newest first, filtered, one page or one export at a time, always bounded.

Only the log of one instance has an index. Any other filter scans a limited number of rows at a time, and the page says
how far back it has searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import QueryDict

from engine.models import Audit, Instance
from engine.status.search import LONGEST_TRANSACTION, first_key, workflow_names

PAGE = 50
WINDOW = 100_000  # rows that one query scans
EXPORTED = 100_000  # rows at most
LOOKED_THROUGH = 2_000_000  # for an export
BATCH = 1_000
NAMESAKES = 100  # deleted instances whose id is in use again

_FIELDS = ("person", "verb", "outcome", "workflow", "id", "since", "until")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
_VERB = re.compile(r"[a-z_-]{1,32}")


@dataclass(frozen=True)
class Wanted:
    """A filter of the log. Empty fields match everything; days are in UTC."""

    person: str = ""  # or a prefix of the name
    verb: str = ""
    outcome: str = ""
    workflow: str = ""
    id: str = ""
    since: date | None = None
    until: date | None = None
    begins_at: datetime | None = None  # the same as moments
    ends_at: datetime | None = None  # excluded

    @classmethod
    def of(cls, given: Mapping[str, str] | QueryDict) -> Wanted:
        """Read it from a query string, ignoring invalid values."""

        def text(name: str) -> str:
            return str(given.get(name, "")).replace("\0", "").strip()[:150]

        since, until = _day(text("since")), _day(text("until"))
        return cls(
            person=text("person"),
            verb=_fitting(_VERB, text("verb")),
            outcome="denied" if text("outcome") == "denied" else "",
            workflow=_fitting(_NAME, text("workflow")),
            id=_fitting(_ID, text("id")),
            since=since,
            until=until,
            begins_at=_midnight(since) if since else None,
            ends_at=_midnight(until, days=1) if until else None,
        )

    @property
    def filled(self) -> dict[str, str]:
        """The fields that are not empty, as in a query string."""
        return {name: str(getattr(self, name)) for name in _FIELDS if getattr(self, name)}

    def query(self, **changes: str) -> str:
        """Return it as a query string, with changes."""
        text = urlencode({name: value for name, value in (self.filled | changes).items() if value})
        return f"?{text}" if text else "?"

    @cached_property
    def keys(self) -> list[int]:
        """The keys of the existing instances with this id, and of deleted ones that had it."""
        there = Instance.objects.filter(workflow__in=self._workflows, id=self.id) if self.id else None
        found = list(there.values_list("key", flat=True)) if there is not None else []
        return [*found, *self._deleted] if found else []

    @property
    def _workflows(self) -> list[str]:
        return [self.workflow] if self.workflow else workflow_names()

    @property
    def _deleted(self) -> list[int]:
        rows = Audit.objects.filter(workflow__in=self._workflows, instance_id=self.id).deletions()
        keys = rows.order_by("-key").values_list("instance_key", flat=True)[:NAMESAKES]
        return [key for key in keys if key is not None]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the log. `older` is where the next page starts; `is_cut` means it ends where the scan stopped."""

    entries: list[Audit]
    older: int | None
    is_cut: bool

    @property
    def top(self) -> int:
        return self.entries[0].key if self.entries else 0


def page_of(
    wanted: Wanted,
    *,
    before: int | None = None,
    limit: int | None = None,
    among: QuerySet[Audit] | None = None,
) -> Page:
    """Read the newest page, or the page before a key. `among` are the rows to search, by default all."""
    top, bottom = _span(wanted, before)
    limit = PAGE if limit is None else limit
    low = bottom if wanted.keys else max(bottom, top - WINDOW)
    rows = matching(wanted, among).filter(key__lt=top, key__gte=low).order_by("-key")
    found = list(rows[: limit + 1])
    if len(found) > limit:
        return Page(found[:limit], found[limit - 1].key, is_cut=False)
    is_cut = low > bottom
    return Page(found, low if is_cut else None, is_cut)


def count_newer(wanted: Wanted, key: int, cap: int = 99) -> int:
    """Count the rows since a page was rendered, up to the cap."""
    top, _ = _span(wanted, None)
    rows = matching(wanted).filter(key__gt=max(key, top - WINDOW)).order_by()
    return rows[:cap].count()


def matching(wanted: Wanted, among: QuerySet[Audit] | None = None) -> QuerySet[Audit]:
    """Return the rows that match a filter. The caller bounds them by key."""
    rows = Audit.objects.all() if among is None else among
    if wanted.keys:
        rows = rows.filter(instance_key__in=wanted.keys)
    elif wanted.id:
        rows = rows.filter(instance_id=wanted.id)
    if wanted.person:
        rows = rows.filter(actor__istartswith=wanted.person)
    if wanted.begins_at:
        rows = rows.filter(at__gte=wanted.begins_at)
    if wanted.ends_at:
        rows = rows.filter(at__lt=wanted.ends_at)
    exact = {name: getattr(wanted, name) for name in ("verb", "outcome", "workflow") if getattr(wanted, name)}
    return rows.filter(**exact)


def export(wanted: Wanted) -> Iterator[list[Audit]]:
    """Yield the newest matching rows in batches. An empty batch at the end means that there were no more."""
    top, bottom = _span(wanted, None)
    lowest, left = max(bottom, top - LOOKED_THROUGH), EXPORTED
    while top > lowest and left:
        low = lowest if wanted.keys else max(lowest, top - WINDOW)
        rows = matching(wanted).filter(key__lt=top, key__gte=low).order_by("-key")
        most = min(BATCH, left)
        found = list(rows[:most])
        if found:
            yield found
        left -= len(found)
        top = found[-1].key if len(found) == most else low
    if top <= bottom:
        yield []


def _span(wanted: Wanted, before: int | None) -> tuple[int, int]:
    """Return the range of keys to search: its exclusive top and its inclusive bottom."""
    ends = Audit.objects.order_by("key").values_list("key", flat=True)
    first, last = ends.first() or 1, ends.last() or 0
    top = last + 1 if before is None else min(before, last + 1)
    if wanted.ends_at:
        top = min(top, first_key(Audit, "at", wanted.ends_at + LONGEST_TRANSACTION))
    if wanted.begins_at:
        first = max(first, first_key(Audit, "at", wanted.begins_at - LONGEST_TRANSACTION))
    return top, first


def _midnight(day: date, *, days: int = 0) -> datetime:
    return datetime.combine(day, time(), UTC) + timedelta(days=days)


def _day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    # The days before and after must be valid, too.
    return day if 1970 <= day.year < 9999 else None


def _fitting(pattern: re.Pattern[str], text: str) -> str:
    return text if pattern.fullmatch(text) else ""
