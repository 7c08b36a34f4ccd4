"""The live views of the list of hooks, and of one hook with its deliveries."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict
from django.utils import timezone

from studio.access.permissions import Verb
from studio.display.rendering import render_to_string
from studio.frame.addresses import cursor
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece
from studio.models import Webhook
from studio.webhooks import queries
from studio.webhooks.schemes import SCHEMES

_PIECES = ("state", "steer", "facts", "deliveries")


@dataclass(frozen=True, slots=True)
class WebhooksView(LiveView):
    """Topic `webhooks`."""

    topic: ClassVar[re.Pattern[str]] = re.compile("webhooks")
    verb: ClassVar[Verb] = Verb.ADMINISTER

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        return cls()

    def drawing(self, user: Any) -> Drawing:
        listed = render_to_string("studio/webhooks/list.html", {"hooks": queries.hooks()})
        return Drawing({"hooks": Piece(listed)})


@dataclass(frozen=True, slots=True)
class WebhookView(LiveView):
    """Topic `webhook:<key>`, with its newest deliveries, or those before one."""

    topic: ClassVar[re.Pattern[str]] = re.compile(r"webhook:([0-9]{1,18})")
    verb: ClassVar[Verb] = Verb.ADMINISTER
    key: int
    before: int | None = None

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        return cls(int(topic[1]), cursor(given.get("before", "")))

    @property
    def query(self) -> str:
        """The query string that names it."""
        before = f"&before={self.before}" if self.before is not None else ""
        return f"topic=webhook:{self.key}{before}"

    def drawing(self, user: Any) -> Drawing:
        hook = Webhook.objects.filter(key=self.key).first()
        if hook is None:
            return _deleted()
        context = {
            "hook": hook,
            "scheme": SCHEMES[hook.scheme],
            "has_old_secret": hook.has_old_secret_at(timezone.now()),
            "found": queries.page_of(hook, self.before),
            "before": self.before,
        }
        return Drawing(
            {
                f"hook-{name}": Piece(render_to_string(f"studio/webhooks/pieces/{name}.html", context))
                for name in _PIECES
            }
        )


def _deleted() -> Drawing:
    """Say that the hook was deleted, and remove what cannot be done any more."""
    pieces = {
        "flash": Piece(render_to_string("studio/webhooks/gone-note.html"), "innerHTML"),
        "hook-steer": Piece('<span id="hook-steer" hidden></span>'),
    }
    return Drawing(pieces, is_done=True, say="This webhook was deleted")
