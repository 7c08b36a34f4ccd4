"""The live view of an instance, also after it was deleted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict
from django.template.loader import render_to_string

from engine.models import Instance
from studio.access.permissions import Verb, require
from studio.frame.address_query import cursor
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece
from studio.instance import deleted_instances
from studio.instance import queries as instance_queries
from studio.instance.drawing import draw_instance


@dataclass(frozen=True, slots=True)
class InstanceView(LiveView):
    """Topic `instance:<key>`, with its newest steps, or those up to `upto`."""

    topic: ClassVar[re.Pattern[str]] = re.compile(r"instance:([0-9]{1,18})")
    seconds_between: ClassVar[float] = 0.25
    moves_by_itself: ClassVar[bool] = True
    key: int
    upto: int | None = None

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        return cls(int(topic[1]), cursor(given.get("upto", "")))

    @property
    def instance_key(self) -> int | None:
        return self.key

    def drawing(self, user: Any) -> Drawing:
        """Render the page, or a note that the instance was deleted."""
        try:
            found = instance_queries.of_key(self.key, self.upto)
        except Instance.DoesNotExist:
            return _deleted(self.key, user)
        return draw_instance(found, user)


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
