"""The live view of the audit trail: the number of rows since the page was rendered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict
from django.urls import reverse

from studio.audit.queries import Wanted, count_newer
from studio.frame.addresses import cursor
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, more_piece

WHOLE_LOG = Wanted()


@dataclass(frozen=True, slots=True)
class AuditView(LiveView):
    """Topic `audit`, with the filter and the key of the newest row."""

    topic: ClassVar[re.Pattern[str]] = re.compile("audit")
    wanted: Wanted = WHOLE_LOG
    top: int = 0

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        return cls(Wanted.of(given), cursor(given.get("top", "")) or 0)

    @property
    def workflow(self) -> str | None:
        return self.wanted.workflow or None

    def drawing(self, user: Any) -> Drawing:
        newer = count_newer(self.wanted, self.top)
        return Drawing({"more": more_piece(newer, reverse("studio:audit") + self.wanted.query())})
