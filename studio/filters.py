"""What a list shows: read from the address, clamped to what is allowed, written back into links."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import QueryDict

from studio.display_status import GROUPS, LOOKS

_SLUG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
LONGEST_ID = 100
_ID = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_-]{{0,{LONGEST_ID - 1}}}")
_OPENED = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,4}))?")
_KEY = re.compile(r"[0-9]{1,18}")
IGNORED_SHOWN = 5
LONGEST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Filter:
    """Workflow, shown status (or group) and the beginning of an id. Empty means all."""

    workflow: str = ""
    status: str = ""
    q: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str] | QueryDict) -> Filter:
        """Read it from a query string. What is not a name, a status or an id finds nothing and harms nothing."""
        status = str(given.get("status", ""))
        return cls(
            workflow=_fitting(_SLUG, str(given.get("workflow", ""))),
            status=status if status in LOOKS or status in GROUPS else "",
            q=str(given.get("q", "")).strip()[: LONGEST_ID + 1],
        )

    @property
    def is_empty(self) -> bool:
        return not (self.workflow or self.status or self.q)

    @property
    def is_impossible(self) -> bool:
        """Tell that no id begins like this."""
        return bool(self.q) and not _ID.fullmatch(self.q)

    @property
    def filled(self) -> dict[str, str]:
        """The fields, as they stand in an address."""
        return {name: getattr(self, name) for name in ("workflow", "status", "q")}

    def query(self, **changes: str) -> str:
        """Write it as a query string, with changes."""
        text = urlencode({name: value for name, value in (self.filled | changes).items() if value})
        return f"?{text}" if text else "?"


def ignored(given: QueryDict, understood: Container[str]) -> list[str]:
    """Return the parts of an address that have no effect, as `name=value`.

    Of a name that stands there twice the last one counts. A list must not show more than was asked for in silence.
    """
    found = []
    for name, values in given.lists():
        without_effect = values[:-1] if name in understood else values
        found += [f"{name}={value.strip()}" for value in without_effect if value.strip()]
    return [_short(part) for part in found[:IGNORED_SHOWN]]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def cursor(text: str) -> int | None:
    """Read a position in a list; None for none and for nonsense."""
    return int(text) if _KEY.fullmatch(text) else None


def keys(text: str, limit: int) -> list[int]:
    """Read the keys of the rows that a page shows."""
    return [int(part) for part in text.split(",")[:limit] if _KEY.fullmatch(part)]


def opened(text: str) -> dict[int, int]:
    """Read which steps are to be open, each with a page of what is within it: `5,9.2`."""
    found = (_OPENED.fullmatch(part) for part in text[:200].split(","))
    return {int(one[1]): int(one[2] or 1) for one in found if one}


def _fitting(pattern: re.Pattern[str], text: str) -> str:
    return text if pattern.fullmatch(text) else ""
