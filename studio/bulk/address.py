"""The addresses of a job and of the dialog that starts one. Nothing else holds state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from studio.frame.addresses import ignored
from studio.instances.address import term_of

OUTCOMES = {"": "All", "done": "Done", "failed": "Failed", "skipped": "Skipped", "open": "Left"}
MOST_GROUPS = 20  # of errors, in one search
_POSITION = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class JobAddress:
    """What the address of a job asks for: an outcome, and the place in the list of instances."""

    id: str
    outcome: str = ""  # empty: all
    after: int = 0
    ignored: tuple[str, ...] = ()

    @classmethod
    def of(cls, id: str, given: QueryDict) -> Self:
        outcome = given.get("outcome", "")
        outcome = outcome if outcome in OUTCOMES else ""
        after = given.get("after", "")
        after = after if _POSITION.fullmatch(after) else ""
        understood = {name for name, value in (("outcome", outcome), ("after", after)) if value}
        return cls(id, outcome, int(after or 0), tuple(ignored(given, understood)))

    @property
    def parameters(self) -> dict[str, str]:
        given = {"outcome": self.outcome, "after": str(self.after or "")}
        return {name: value for name, value in given.items() if value}

    def url(self, **changes: str) -> str:
        """Return the address with changes, at the first page of instances unless they name another."""
        return _with(reverse("studio:bulk-job", args=[self.id]), {"outcome": self.outcome} | changes)


def list_address(before: str = "") -> str:
    """Return the address of the list of jobs, or of those before a place in it."""
    return _with(reverse("studio:bulk-jobs"), {"before": before})


def dialog_address(action: str, query: str, back: str = "") -> str:
    """Return the address of the dialog that starts a job on what a search finds; `back` is the page before it."""
    return _with(reverse("studio:bulk-new"), {"action": action, "q": query, "next": back})


def retry_address(fingerprints: Sequence[str], status: str, *, by: str = "", back: str = "") -> str:
    """Return the address of the dialog that retries the instances of an error; empty for too many groups.

    `by` limits it to those that a person started.
    """
    if not fingerprints or len(fingerprints) > MOST_GROUPS:
        return ""
    terms = [
        f"error-group:{','.join(fingerprints)}",
        f"status:{status}",
        *([term_of("by", by)] if by else []),
    ]
    return dialog_address("retry", " ".join(terms), back)


def _with(path: str, parameters: dict[str, str]) -> str:
    given = urlencode({name: value for name, value in parameters.items() if value}, safe=":,")
    return f"{path}?{given}" if given else path
