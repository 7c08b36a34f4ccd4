"""Which of the steps a page shows: the newest, those up to one, or those that somebody looks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self
from urllib.parse import urlencode

from django.db.models import F, Q
from django.http import QueryDict

from studio.frame.addresses import cursor

SHOWN = 200  # up to as many steps are shown at once
WINDOW = 100  # of more, as many at a time
SLOWEST = 20
LONGEST_FIND = 100
LARGEST = 2**31 - 1  # number of a step
KINDS = ("failed", "retried", "slow")
OF_WINDOW = ("upto", "find", "only", "unfold", "rows")  # its parameters in an address
OPEN_AT_ONCE = 5  # most steps that an address may open
_OPENED = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,4}))?")
FAILED = Q(status="errored") | Q(status="waiting", kind="do")


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the steps. `only` is one of KINDS; `is_unfolded` draws times without activity to scale.

    `rows` are the steps whose inner ones have rows of their own, each with the page of those.
    """

    upto: int | None = None
    find: str = ""
    only: str = ""
    is_unfolded: bool = False
    rows: Mapping[int, int] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, given: QueryDict) -> Self:
        """Read it from an address."""
        only = given.get("only", "")
        return cls(
            cursor(given.get("upto", "")),
            given.get("find", "").replace("\0", "").strip()[:LONGEST_FIND],
            only if only in KINDS else "",
            given.get("unfold", "") == "1",
            opened(given.get("rows", "")),
        )

    @property
    def query(self) -> str:
        """Its part of an address."""
        parts = {"upto": self.upto, "find": self.find, "only": self.only, "unfold": self.is_unfolded and 1}
        parts["rows"] = ",".join(f"{seq}.{page}" if page > 1 else str(seq) for seq, page in self.rows.items())
        return urlencode({name: value for name, value in parts.items() if value not in (None, "", False)})

    @property
    def kinds(self) -> list[tuple[str, str, bool]]:
        """Each kind of step, the address that shows only those, or all again, and whether it is chosen."""
        return [
            (kind, self._query(only="" if kind == self.only else kind), kind == self.only) for kind in KINDS
        ]

    @property
    def failed(self) -> str:
        """The address that shows the failed steps."""
        return self._query(only="failed")

    @property
    def newest(self) -> str:
        """The address of the newest of these steps."""
        return self._query()

    @property
    def folding(self) -> str:
        """The address that draws times without activity the other way."""
        return replace(self, is_unfolded=not self.is_unfolded).query

    def with_rows(self, seq: int, page: int) -> str:
        """Return the address that shows a page of the steps inside one, or none of them on page 0."""
        rest = {one: at for one, at in self.rows.items() if one != seq}
        rows = {**rest, seq: page} if page else rest
        return replace(self, rows=dict([*rows.items()][-OPEN_AT_ONCE:])).query

    def at(self, upto: int) -> str:
        """Return the address of these steps up to one."""
        return self._query(upto=upto)

    def _query(self, **changed: Any) -> str:
        return replace(self, **{"upto": None, **changed}).query

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


def opened(text: str) -> dict[int, int]:
    """Read which steps an address opens, and at which page: `5,9.2`."""
    found = [one for part in text[:200].split(",") if (one := _OPENED.fullmatch(part))]
    return {int(one[1]): max(int(one[2] or 1), 1) for one in found[:OPEN_AT_ONCE]}


NEWEST = Window()
