"""The tabs of the workflow page. To add one, add a line to `TABS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.declare.registry import workflows as registry
from engine.status.options import options_of
from engine.values.files import shown_file
from studio.display.rendering import render_to_string
from studio.errors import groups
from studio.errors.address import ListAddress
from studio.errors.live import draw_errors
from studio.frame.pieces import Piece
from studio.schedules.live import timetable_piece
from studio.workflow.versions import versions_of
from studio.workflows.queries import Overview

Draw = Callable[[Overview, Any], Mapping[str, Piece]]


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab: its value of `tab` in the address, empty for the first one, and the pieces that only it has.

    Its template is named after it; the links are in `head.html`, which other pages of the workflow have, too.
    """

    name: str
    draw: Draw
    is_personal: bool = False  # users with equal rights may see different pieces

    @property
    def template(self) -> str:
        return f"studio/workflow/tabs/{self.name or 'overview'}.html"


def _overview(overview: Overview, user: Any) -> Mapping[str, Piece]:
    return {}


def _versions(overview: Overview, user: Any) -> Mapping[str, Piece]:
    workflow = registry.get(overview.name)
    current = "" if workflow is None else workflow.fingerprint
    context = {
        "versions": versions_of(overview.name, current),
        "overview": overview,
        "pauses": workflow is not None and workflow.on_code_change == "pause",
    }
    return {"versions": Piece(render_to_string("studio/workflow/versions.html", context))}


def _schedules(overview: Overview, user: Any) -> Mapping[str, Piece]:
    return {"schedules": timetable_piece(user, overview.name)}


def _errors(overview: Overview, user: Any) -> Mapping[str, Piece]:
    asked = ListAddress(workflow=overview.name)
    drawn = draw_errors(asked, groups.page_of(asked, user), user).pieces
    return {"errors-list": drawn["errors-list"]}


def _settings(overview: Overview, user: Any) -> Mapping[str, Piece]:
    workflow = registry.get(overview.name)
    context = {
        "overview": overview,
        "options": [] if workflow is None else options_of(workflow),
        "source": None if workflow is None else (shown_file(workflow.source[0]), workflow.source[1]),
        "schedules": 0 if workflow is None else len(workflow.schedules),
    }
    return {"settings": Piece(render_to_string("studio/workflow/settings.html", context))}


TABS = (
    Tab("", _overview),
    Tab("versions", _versions),
    Tab("schedules", _schedules),
    Tab("errors", _errors, is_personal=True),
    Tab("settings", _settings),
)
BY_NAME = {tab.name: tab for tab in TABS}


def tab_of(name: str) -> Tab:
    """Return a tab by its name in the address, or the first for an unknown one."""
    return BY_NAME.get(name, TABS[0])
