"""The filter of the list: read from the address, limited to valid values, written back into links."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import QueryDict

from engine.values.shown import GROUPS
from studio.display.status import LOOKS

_SLUG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
LONGEST_ID = 100
_ID = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_-]{{0,{LONGEST_ID - 1}}}")


@dataclass(frozen=True, slots=True)
class Filter:
    """Workflow, shown status (or group) and the start of an id. Empty means all."""

    workflow: str = ""
    status: str = ""
    q: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str] | QueryDict) -> Filter:
        """Read it from a query string. Invalid names and statuses are ignored; an invalid id finds nothing."""
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
        """Whether no id can start like this."""
        return bool(self.q) and not _ID.fullmatch(self.q)

    @property
    def filled(self) -> dict[str, str]:
        """The fields, as in a query string."""
        return {name: getattr(self, name) for name in ("workflow", "status", "q")}

    def query(self, **changes: str) -> str:
        """Return it as a query string, with changes."""
        text = urlencode({name: value for name, value in (self.filled | changes).items() if value})
        return f"?{text}" if text else "?"


def _fitting(pattern: re.Pattern[str], text: str) -> str:
    return text if pattern.fullmatch(text) else ""
