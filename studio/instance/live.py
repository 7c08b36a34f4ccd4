"""The live view of an instance, also after it was deleted, and the pieces of its page."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
from studio.instance.activity.stream import latest_from_people
from studio.instance.alike import alike
from studio.instance.choices import choices_of
from studio.instance.page import InstancePage
from studio.instance.tab import Drawn, Tab, pieces_of
from studio.instance.tabs import TABS, bar, tab_of
from studio.instance.window import NEWEST, OF_WINDOW, Window

_PIECES = ("head", "generations", "generation-menu", "why", "actions", "tabs", "event-hint")
NOTHING_GIVEN: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class InstanceView(LiveView):
    """Topic `instance:<key>` with a tab, and the window of its steps."""

    topic: ClassVar[re.Pattern[str]] = re.compile(r"instance:([0-9]{1,18})")
    seconds_between: ClassVar[float] = 0.25
    moves_by_itself: ClassVar[bool] = True
    key: int
    window: Window = NEWEST
    tab: str = ""
    given: tuple[tuple[str, str], ...] = ()  # other parameters that the tab takes

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        tab = tab_of(given.get("tab", ""))
        others = {name: str(given[name]) for name in tab.takes if name in given and name not in OF_WINDOW}
        return cls(int(topic[1]), Window.of(given), tab.name, tuple(others.items()))

    @property
    def instance_key(self) -> int | None:
        return self.key

    def drawing(self, user: Any) -> Drawing:
        """Render the page, or a note that the instance was deleted."""
        try:
            found = instance_queries.of_key(self.key, self.window)
        except Instance.DoesNotExist:
            return _deleted(self.key, user)
        return draw_instance(found, user, tab=tab_of(self.tab), given=dict(self.given), is_page=False)


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
    found: InstancePage,
    user: Any,
    *,
    tab: Tab = TABS[0],
    given: Mapping[str, str] = NOTHING_GIVEN,
    typed: Entry | None = None,
    is_page: bool = True,
) -> Drawing:
    """Render a tab of the instance page for a user. `given` are the parameters of its address.

    `typed` is a request with a rejected answer. `is_page` is False for what follows a page.
    """
    require(user, Verb.VIEW, found.instance.workflow)
    asked = _requests(found, user, typed)
    context = {
        "d": found,
        "instance": found.instance,
        "may_act": allowed(user, Verb.OPERATE, found.instance.workflow),
        "choices": choices_of(found),
        "tabs": bar(found, tab),
        "given": given,
        "is_page": is_page,
        "requests": asked,
        "place": "",
        "alike": None if found.is_past else alike(found.instance, found.record.facts.steps, user),
        "latest": latest_from_people(found.instance) if not tab.name else (),
    }
    pieces = pieces_of(context, *_PIECES)
    # Replace the whole sentence: a morph would keep a ticking time and move it to the wrong place.
    pieces["why"] = replace(pieces["why"], swap="outerHTML")
    drawn = tab.draw(found, context) if is_page or tab.is_followed else Drawn()
    return Drawing(
        {**pieces, **drawn.pieces},
        order=drawn.order,
        follow=drawn.follow,
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
