"""The live view of an instance, also after it was deleted, and the pieces of its page."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from django.http import QueryDict

from engine.models import Instance
from studio.access.permissions import Verb, allowed, require
from studio.approvals import queries as inbox
from studio.approvals.entry import Entry
from studio.display.rendering import render_to_string
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece
from studio.instance import deleted_instances
from studio.instance import queries as instance_queries
from studio.instance.alike import alike
from studio.instance.choices import choices_of
from studio.instance.page import InstancePage
from studio.instance.tab import Tab, pieces_of
from studio.instance.tabs import TABS, bar, tab_of
from studio.instance.window import NEWEST, Window

_PIECES = ("head", "generations", "why", "actions", "tabs", "event-hint")
NOTES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class InstanceView(LiveView):
    """Topic `instance:<key>` with a tab, and the window of its steps."""

    topic: ClassVar[re.Pattern[str]] = re.compile(r"instance:([0-9]{1,18})")
    seconds_between: ClassVar[float] = 0.25
    moves_by_itself: ClassVar[bool] = True
    key: int
    window: Window = NEWEST
    tab: str = ""

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        tab = tab_of(given.get("tab", "")).name
        return cls(int(topic[1]), Window.of(given), tab)

    @property
    def instance_key(self) -> int | None:
        return self.key

    def drawing(self, user: Any) -> Drawing:
        """Render the page, or a note that the instance was deleted."""
        try:
            found = instance_queries.of_key(self.key, self.window)
        except Instance.DoesNotExist:
            return _deleted(self.key, user)
        return draw_instance(found, user, tab=tab_of(self.tab))


def _deleted(key: int, user: Any) -> Drawing:
    """Render a note that the instance was deleted, and remove the actions."""
    deleted = deleted_instances.of_key(key)
    if deleted is None:
        return Drawing({}, is_done=True)
    require(user, Verb.VIEW, deleted.workflow)
    said = render_to_string("studio/instance/gone-note.html", {"deleted": deleted})
    actions = '<div id="actions" class="steer" hidden></div>'
    pieces = {"flash": Piece(said, "innerHTML"), "actions": Piece(actions)}
    return Drawing(pieces, is_done=True, say=f"{deleted.id} was deleted")


def draw_instance(
    found: InstancePage, user: Any, *, tab: Tab = TABS[0], typed: Entry | None = None
) -> Drawing:
    """Render a tab of the instance page for a user. `typed` is a request with a rejected answer."""
    require(user, Verb.VIEW, found.instance.workflow)
    asked = _requests(found, user, typed)
    context = {
        "d": found,
        "instance": found.instance,
        "may_act": allowed(user, Verb.OPERATE, found.instance.workflow),
        "choices": choices_of(found),
        "tabs": bar(found, tab),
        "requests": asked,
        "place": "",
        "audit_trail": found.record.audit,
        "alike": None if found.is_past else alike(found.instance, user),
        "latest_notes": [entry for entry in found.record.audit if entry.is_note][:NOTES_SHOWN],
    }
    pieces = pieces_of(context, *_PIECES)
    # Replace the whole sentence: a morph would keep a ticking time and move it to the wrong place.
    pieces["why"] = replace(pieces["why"], swap="outerHTML")
    drawn = tab.draw(found, context)
    return Drawing(
        {**pieces, **drawn.pieces},
        order=drawn.order,
        is_done=found.instance.is_finished,
        say=_said_of(found),
        is_personal=bool(asked),
        forms=tuple(one.ref for one in asked),
    )


def _requests(found: InstancePage, user: Any, typed: Entry | None) -> list[Entry]:
    """Read its open requests; replace one by `typed`."""
    is_asking = found.has_requests and not found.is_past
    asked = inbox.of_instance(found.instance, user) if is_asking else []
    return [typed if typed is not None and one.ref == typed.ref else one for one in asked]


def _said_of(found: InstancePage) -> str:
    number = found.generations.newest
    again = f" in generation {number}, after a restart" if number > 1 else ""
    return f"{found.instance.id} is now {found.status}{again}"
