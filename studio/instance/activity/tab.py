"""The tab with the stream. What is new waits above it, until somebody asks for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from studio.display.rendering import render_to_string
from studio.frame.pieces import Piece
from studio.instance.activity import stream
from studio.instance.activity.count import count_entries
from studio.instance.activity.entry import Cursor, Entries, Kind
from studio.instance.activity.wanted import Wanted
from studio.instance.page import InstancePage
from studio.instance.tab import Context, Drawn

TEMPLATE = "studio/instance/activity/tab.html"
TAKES = ("kind", "by", "before", "last")
_PIECES = ("filter", "list", "pager")


def count(page: InstancePage) -> int:
    return count_entries(page.instance)


def refuses(given: Mapping[str, str]) -> Collection[str]:
    """Return the parameters of an address that have no effect, as their values are unknown."""
    named = {part.strip() for part in str(given.get("kind", "")).split(",")} - {""}
    unknown = {"kind"} if named - {*Kind} else set()
    return unknown | ({"before"} if given.get("before") and Cursor.of(given["before"]) is None else set())


def draw(page: InstancePage, context: Context) -> Drawn:
    """Render a page of the stream. The socket asks for the same one and for what is new above it."""
    given: Mapping[str, str] = context["given"]
    wanted, before = Wanted.of(given), Cursor.of(given.get("before", ""))
    last = Cursor.of(given.get("last", ""))
    if last is not None and before is None:
        found = Entries(stream.down_to(page.instance, wanted, last), last)
    else:
        found = stream.page_of(page.instance, wanted, before)
    shown = {**context, **_filter(page, wanted), **_shown(wanted, before, found)}
    names = {"filter": "activity-filter", "list": "activity", "pager": "activity-pager"}
    pieces = {
        names[one]: Piece(render_to_string(f"studio/instance/activity/{one}.html", shown)) for one in _PIECES
    }
    follow = {**wanted.filled, "before": str(before or ""), "last": str(found.older or "")}
    return Drawn(pieces, follow={name: value for name, value in follow.items() if value})


def _shown(wanted: Wanted, before: Cursor | None, found: Entries) -> dict[str, object]:
    return {
        "wanted": wanted,
        "entries": found.shown,
        "newest": wanted.query(),
        "is_older_page": before is not None,
        "older": wanted.query(before=str(found.older)) if found.older is not None else "",
    }


def _filter(page: InstancePage, wanted: Wanted) -> dict[str, object]:
    people = stream.people_of(page.instance, wanted)
    return {
        "all_kinds": replace(wanted, kinds=()).query(),
        "kinds": [(kind, wanted.toggled(kind).query(), kind in wanted.kinds) for kind in Kind],
        "people": [
            (name, wanted.of_person("" if name == wanted.by else name).query(), name == wanted.by)
            for name in people
        ],
    }
