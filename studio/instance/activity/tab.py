"""The tab with the stream. What is new waits above it, until somebody asks for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from studio.display.rendering import render_to_string
from studio.frame.pieces import Piece
from studio.instance.activity import stream
from studio.instance.activity.count import count_entries
from studio.instance.activity.entry import BOTTOM, Cursor, Entries, Kind
from studio.instance.activity.wanted import Wanted
from studio.instance.page import InstancePage
from studio.instance.tab import Context, Drawn

TEMPLATE = "studio/instance/activity/tab.html"
TAKES = ("kind", "by", "before", "last")  # `last` is where the page ended, which only its socket says


def count(page: InstancePage) -> int:
    return count_entries(page.instance)


def refuses(given: Mapping[str, str]) -> Collection[str]:
    """Return the parameters of an address that have no effect, as their values are unknown."""
    named = {part.strip() for part in str(given.get("kind", "")).split(",")} - {""}
    unknown = {"kind"} if named - {*Kind} else set()
    is_wrong = bool(given.get("before")) and Cursor.of(given["before"]) is None
    return unknown | {"last"} | ({"before"} if is_wrong else set())


def draw(page: InstancePage, context: Context) -> Drawn:
    """Render a page of the stream. The socket asks for the same one and for what is new above it."""
    given: Mapping[str, str] = context["given"]
    wanted, before = Wanted.of(given), Cursor.of(given.get("before", ""))
    last = None if context["is_page"] else Cursor.of(given.get("last", ""))
    if last is not None and before is None:
        found = stream.down_to(page.instance, wanted, last)
    else:
        found = stream.page_of(page.instance, wanted, before)
    shown = {**context, **_shown(wanted, before, found)}
    pieces = {"activity": _piece("list", shown), "activity-pager": _piece("pager", shown)}
    if context["is_page"]:  # once: chips must not change places while somebody aims at them
        pieces["activity-filter"] = _piece("filter", {**shown, **_filter(page, wanted)})
    follow = {**wanted.filled, "before": str(before or ""), "last": str(last or found.older or BOTTOM)}
    return Drawn(pieces, follow={name: value for name, value in follow.items() if value})


def _piece(name: str, shown: Mapping[str, object]) -> Piece:
    return Piece(render_to_string(f"studio/instance/activity/{name}.html", dict(shown)))


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
