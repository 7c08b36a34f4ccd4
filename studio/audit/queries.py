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
from engine.status.search import workflow_names

PAGE = 50
WINDOW = 100_000  # rows that one query scans
EXPORTED = 100_000  # rows at most
LOOKED_THROUGH = 2_000_000  # for an export
BATCH = 1_000
NAMESAKES = 100  # deleted instances whose id is in use again
# The time of a row is the start of its transaction; its key is assigned when it is written.
LONGEST_TRANSACTION = timedelta(hours=1)

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

    @classmethod
    def of(cls, given: Mapping[str, str] | QueryDict) -> Wanted:
        """Read it from a query string, ignoring invalid values."""

        def text(name: str) -> str:
            return str(given.get(name, "")).replace("\0", "").strip()[:150]

        return cls(
            person=text("person"),
            verb=_fitting(_VERB, text("verb")),
            outcome="denied" if text("outcome") == "denied" else "",
            workflow=_fitting(_NAME, text("workflow")),
            id=_fitting(_ID, text("id")),
            since=_day(text("since")),
            until=_day(text("until")),
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


def page_of(wanted: Wanted, *, before: int | None = None) -> Page:
    """Read the newest page, or the page before a key."""
    top, bottom = _span(wanted, before)
    low = bottom if wanted.keys else max(bottom, top - WINDOW)
    rows = matching(wanted).filter(key__lt=top, key__gte=low).order_by("-key")
    found = list(rows[: PAGE + 1])
    if len(found) > PAGE:
        return Page(found[:PAGE], found[PAGE - 1].key, is_cut=False)
    is_cut = low > bottom
    return Page(found, low if is_cut else None, is_cut)


def count_newer(wanted: Wanted, key: int, cap: int = 99) -> int:
    """Count the rows since a page was rendered, up to the cap."""
    top, _ = _span(wanted, None)
    rows = matching(wanted).filter(key__gt=max(key, top - WINDOW)).order_by()
    return rows[:cap].count()


def matching(wanted: Wanted) -> QuerySet[Audit]:
    """Return the rows that match a filter. The caller bounds them by key."""
    rows = Audit.objects.all()
    if wanted.keys:
        rows = rows.filter(instance_key__in=wanted.keys)
    elif wanted.id:
        rows = rows.filter(instance_id=wanted.id)
    if wanted.person:
        rows = rows.filter(actor__istartswith=wanted.person)
    if wanted.since:
        rows = rows.filter(at__gte=_midnight(wanted.since))
    if wanted.until:
        rows = rows.filter(at__lt=_midnight(wanted.until, days=1))
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
    if wanted.until:
        top = min(top, _key_at(_midnight(wanted.until, days=1) + LONGEST_TRANSACTION, first, last + 1))
    if wanted.since:
        first = _key_at(_midnight(wanted.since) - LONGEST_TRANSACTION, first, last + 1)
    return top, first


def _key_at(moment: datetime, low: int, high: int) -> int:
    """Find the first key at or after a time by bisection: rows are in order of time, and time has no index."""
    while low < high:
        middle = (low + high) // 2
        row = Audit.objects.filter(key__gte=middle).order_by("key").values_list("key", "at").first()
        if row is None or row[1] >= moment:
            high = middle
        else:
            low = row[0] + 1
    return low


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
