"""What a few typed letters can mean to a person, in groups, the most exact first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from engine.declare.registry import workflows as registry
from engine.models import Instance
from engine.status.search import keys_alike, workflow_names
from studio.access.permissions import Verb, allowed, visible
from studio.instances.queries import rows_by_key
from studio.saved_views import queries as views
from studio.saved_views.tabs import address_of

LONGEST = 200  # characters of what is typed
MOST = 8  # of each kind
PAGES = (
    ("Home", "home", "house"),
    ("Workflows", "workflows", "workflow"),
    ("Instances", "instances", "layers"),
    ("Saved views", "saved-views", "layers"),
    ("Errors", "errors", "triangle-alert"),
    ("Approvals", "approvals", "inbox"),
    ("Charts", "charts", "chart-column"),
    ("Workers", "workers", "server"),
    ("Schedules", "schedules", "calendar-clock"),
    ("Bulk jobs", "bulk-jobs", "zap"),
    ("Audit trail", "audit", "scroll-text"),
    ("Tokens", "tokens", "key-round"),
    ("HTTP API", "api-docs", "braces"),
    ("Keyboard shortcuts", "shortcuts", "keyboard"),
    ("Preferences", "preferences", "monitor"),
    ("Wall screen", "tv", "monitor"),
)
FOR_ADMINS = (("Webhooks", "webhooks", "link"),)


@dataclass(frozen=True, slots=True)
class Entry:
    """A place to go to. `verb` comes before its name, `detail` after it."""

    name: str
    address: str
    icon: str
    verb: str = ""
    detail: str = ""
    status: str = ""  # of an instance


@dataclass(frozen=True, slots=True)
class Group:
    """Entries of one kind."""

    title: str
    entries: tuple[Entry, ...]


def find(user: Any, typed: str) -> tuple[Group, ...]:
    """Return what a person may mean, at most `MOST` of a kind. With nothing typed, the pages and some workflows."""
    text = typed.replace("\0", "").strip()[:LONGEST]
    words = text.lower().split()
    names = visible(user, workflow_names())
    found = {
        "Workflows": _workflows(names, words, text),
        "Instances": _instances(user, names, text),
        "Start": _starts(user, names, words),
        "Pages": _pages(user, words),
        "Saved views": _views(user, words),
        "Search": _searches(text),
    }
    groups = (Group(title, tuple(islice(entries, MOST))) for title, entries in found.items())
    return tuple(group for group in groups if group.entries)


def _has(name: str, words: Iterable[str]) -> bool:
    """Return whether a name has each of the words, wherever."""
    lowered = name.lower()
    return all(word in lowered for word in words)


def _pages(user: Any, words: list[str]) -> Iterator[Entry]:
    pages = PAGES + FOR_ADMINS if allowed(user, Verb.ADMINISTER, None) else PAGES
    return (
        Entry(title, reverse(f"studio:{name}"), icon) for title, name, icon in pages if _has(title, words)
    )


def _workflows(names: Sequence[str], words: Sequence[str], text: str) -> Iterator[Entry]:
    found = sorted((name for name in names if _has(name, words)), key=lambda name: not name.startswith(text))
    return (Entry(name, reverse("studio:workflow", args=[name]), "workflow") for name in found)


def _starts(user: Any, names: Sequence[str], words: Sequence[str]) -> Iterator[Entry]:
    """Workflows that the person may start: `start order` and `order` both find `process-order`."""
    wanted = words[1:] if words[:1] == ["start"] else words
    if words:
        for name in names:
            if name in registry and _has(name, wanted) and allowed(user, Verb.OPERATE, name):
                yield Entry(name, reverse("studio:start", args=[name]), "play", verb="Start")


def _instances(user: Any, names: Sequence[str], text: str) -> Iterator[Entry]:
    """Those whose ID begins so, the newest first."""
    keys = keys_alike(text) if text else []
    if not keys:
        return
    seen = [*names, *visible(user, workflow_names(of_system=True))]
    found = (
        Instance.objects.filter(key__in=keys, workflow__in=seen)
        .order_by("-key")
        .values_list("key", flat=True)
    )
    for one in rows_by_key(list(found[:MOST])):
        yield Entry(one.id, one.get_absolute_url(), "", detail=one.workflow, status=one.status)


def _views(user: Any, words: list[str]) -> Iterator[Entry]:
    return (
        Entry(one.name, address_of(one.slug), "search")
        for one in views.seen_by(user)
        if _has(one.name, words)
    )


def _searches(text: str) -> Iterator[Entry]:
    if text:
        given = f"?{urlencode({'query': text})}"
        yield Entry(text, f"{reverse('studio:instances')}{given}", "search", verb="Search instances for")
        yield Entry(text, f"{reverse('studio:errors')}{given}", "search", verb="Search errors for")
