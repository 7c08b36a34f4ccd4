"""Which of the steps a page shows: the newest, those up to one, or those that somebody looks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode

from django.db.models import F, Q
from django.http import QueryDict

from studio.frame.addresses import cursor

SHOWN = 200  # up to as many steps are shown at once
WINDOW = 100  # of more, as many at a time
SLOWEST = 20
LONGEST_FIND = 100
KINDS = ("failed", "retried", "slow")
OF_WINDOW = ("upto", "find", "only", "unfold")  # its parameters in an address
FAILED = Q(status="errored") | Q(status="waiting", kind="do")


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the steps. `only` is one of KINDS; `is_unfolded` draws times without activity to scale."""

    upto: int | None = None
    find: str = ""
    only: str = ""
    is_unfolded: bool = False

    @classmethod
    def of(cls, given: QueryDict) -> Self:
        """Read it from an address."""
        only = given.get("only", "")
        return cls(
            cursor(given.get("upto", "")),
            given.get("find", "").replace("\0", "").strip()[:LONGEST_FIND],
            only if only in KINDS else "",
            given.get("unfold", "") == "1",
        )

    @property
    def query(self) -> str:
        """Its part of an address, which begins with an ampersand unless it is empty."""
        parts = {"upto": self.upto, "find": self.find, "only": self.only, "unfold": self.is_unfolded and 1}
        found = {name: value for name, value in parts.items() if value not in (None, "", False)}
        return f"&{urlencode(found)}" if found else ""

    @property
    def kinds(self) -> tuple[str, ...]:
        return KINDS

    @property
    def is_narrowed(self) -> bool:
        return bool(self.find or self.only)

    @property
    def is_newest(self) -> bool:
        return self.upto is None and not self.is_narrowed

    def narrowed(self, rows: Any) -> Any:
        """Return those of a query for steps that somebody looks for."""
        if self.find:
            rows = rows.filter(name__icontains=self.find)
        if self.only == "failed":
            rows = rows.filter(FAILED)
        elif self.only == "retried":
            rows = rows.filter(attempts__gt=1)
        elif self.only == "slow":
            ended = rows.filter(finished_at__isnull=False)
            by_time = ended.order_by(F("started_at") - F("finished_at")).values_list("seq", flat=True)
            rows = rows.filter(seq__in=list(by_time[:SLOWEST]))
        return rows


NEWEST = Window()
