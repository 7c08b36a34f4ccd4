"""The tab with the stream. What is new waits above it, until somebody asks for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from studio.display.rendering import render_to_string
from studio.frame.pieces import Piece
from studio.instance.activity import stream
from studio.instance.activity.count import count_entries
from studio.instance.activity.entry import BOTTOM, Cursor, Entries, Kind
from studio.instance.activity.stream import Following
from studio.instance.activity.wanted import Wanted
from studio.instance.page import InstancePage
from studio.instance.tab import Context, Drawn

TEMPLATE = "studio/instance/activity/tab.html"
OF_SOCKET = ("first", "last")  # where the page begins and ends, which only its socket says
TAKES = ("kind", "by", "before", *OF_SOCKET)


def count(page: InstancePage) -> int:
    return count_entries(page.instance)


def refuses(given: Mapping[str, str]) -> Collection[str]:
    """Return the parameters of an address that have no effect, as their values are unknown."""
    named = {part.strip() for part in str(given.get("kind", "")).split(",")} - {""}
    unknown = {"kind"} if named - {*Kind} else set()
    is_wrong = bool(given.get("before")) and Cursor.of(given["before"]) is None
    return unknown | {*OF_SOCKET} | ({"before"} if is_wrong else set())


def draw(page: InstancePage, context: Context) -> Drawn:
    """Render a page of the stream. The socket asks for the same one and for what is new above it."""
    given: Mapping[str, str] = context["given"]
    wanted, before = Wanted.of(given), Cursor.of(given.get("before", ""))
    read = None if context["is_page"] or before is not None else _read_before(given)
    found: Entries | Following
    if read is None:
        found = stream.page_of(page.instance, wanted, before)
        first, last = found.newest, found.older or BOTTOM
    else:
        first, last = read
        found = stream.following(page.instance, wanted, first, last)
    shown = {**context, **_shown(wanted, before, found)}
    pieces = {"activity": _piece("list", shown), "activity-pager": _piece("pager", shown)}
    if context["is_page"]:  # once: chips must not change places while somebody aims at them
        pieces["activity-filter"] = _piece("filter", {**shown, **_filter(page, wanted)})
    ends = {"before": str(before)} if before is not None else {"first": str(first), "last": str(last)}
    return Drawn(pieces, follow={**wanted.filled, **ends})


def _read_before(given: Mapping[str, str]) -> tuple[Cursor, Cursor] | None:
    """Return where the page that the socket follows begins and ends."""
    first, last = Cursor.of(given.get("first", "")), Cursor.of(given.get("last", ""))
    return None if first is None or last is None else (first, last)


def _piece(name: str, shown: Mapping[str, object]) -> Piece:
    return Piece(render_to_string(f"studio/instance/activity/{name}.html", dict(shown)))


def _shown(wanted: Wanted, before: Cursor | None, found: Entries | Following) -> dict[str, object]:
    return {
        "wanted": wanted,
        "entries": found.shown,
        "above": found.newest if isinstance(found, Following) else (),
        "gap": wanted.query(before=str(found.gap)) if isinstance(found, Following) and found.gap else "",
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
