"""The addresses of the list and of an error. Nothing else holds state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from studio.frame.addresses import WorkflowName, ignored

STATES = ("open", "resolved", "ignored")
SPANS = {"hour": "Last hour", "day": "24 hours", "fortnight": "14 days"}
KINDS = {"errored": "Errored", "retrying": "Backing off", "paused": "Paused", "went_on": "Went on"}
LONGEST_QUERY = 200
_WORKFLOW = re.compile(WorkflowName.regex)
_CURSOR = re.compile(r"[0-9]{1,16}-[0-9a-f]{16}")
_KEY = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class ListAddress:
    """What an address of the list asks for. `ignored` are the parts of it that have no effect."""

    state: str = "open"
    workflow: str = ""
    query: str = ""
    after: str = ""
    ignored: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: QueryDict) -> Self:
        found = {
            "state": _one_of(given.get("state", ""), STATES),
            "workflow": _matching(given.get("workflow", ""), _WORKFLOW),
            "query": given.get("query", "").replace("\0", "").strip()[:LONGEST_QUERY],
            "after": _matching(given.get("after", ""), _CURSOR),
        }
        understood = {name for name, value in found.items() if value}
        return cls(
            state=found["state"] or "open",
            workflow=found["workflow"],
            query=found["query"],
            after=found["after"],
            ignored=tuple(ignored(given, understood)),
        )

    @property
    def parameters(self) -> dict[str, str]:
        """The whole address, without the place and without what is usual."""
        return _filled(
            {
                "state": "" if self.state == "open" else self.state,
                "workflow": self.workflow,
                "query": self.query,
            }
        )

    @property
    def is_filtered(self) -> bool:
        return bool(self.workflow or self.query)

    @property
    def open_address(self) -> str:
        return self.url(state="")

    @property
    def resolved_address(self) -> str:
        return self.url(state="resolved")

    @property
    def ignored_address(self) -> str:
        return self.url(state="ignored")

    @property
    def unfiltered(self) -> str:
        return self.url(workflow="", query="")

    def url(self, **changes: str) -> str:
        """Return the address with changes, at its first page unless they name another."""
        return _with_query(reverse("studio:errors"), self.parameters | changes)


@dataclass(frozen=True, slots=True)
class ErrorAddress:
    """What an address of an error asks for: one workflow or all that have it, a span of time, a kind of instances."""

    fingerprint: str
    workflow: str = ""  # empty: all that fail with this error
    span: str = "fortnight"
    kind: str = "errored"
    after: str = ""
    ignored: tuple[str, ...] = ()

    @classmethod
    def of(cls, fingerprint: str, given: QueryDict) -> Self:
        found = {
            "workflow": _matching(given.get("workflow", ""), _WORKFLOW),
            "span": _one_of(given.get("span", ""), SPANS),
            "kind": _one_of(given.get("kind", ""), KINDS),
            "after": _matching(given.get("after", ""), _KEY),
        }
        understood = {name for name, value in found.items() if value}
        return cls(
            fingerprint,
            workflow=found["workflow"],
            span=found["span"] or "fortnight",
            kind=found["kind"] or "errored",
            after=found["after"],
            ignored=tuple(ignored(given, understood)),
        )

    @property
    def parameters(self) -> dict[str, str]:
        """The whole address, without the place and without what is usual."""
        return _filled(
            {
                "workflow": self.workflow,
                "span": "" if self.span == "fortnight" else self.span,
                "kind": "" if self.kind == "errored" else self.kind,
            }
        )

    def url(self, **changes: str) -> str:
        """Return the address with changes, at the first page of instances unless they name another."""
        return _with_query(reverse("studio:error", args=[self.fingerprint]), self.parameters | changes)

    def act(self, name: str) -> str:
        """Return the address of an action on what the page shows."""
        where = reverse(f"studio:error-{name}", args=[self.fingerprint])
        return _with_query(where, {"workflow": self.workflow})


def _one_of(text: str, words: tuple[str, ...] | Mapping[str, str]) -> str:
    return text if text in words else ""


def _matching(text: str, pattern: re.Pattern[str]) -> str:
    return text if pattern.fullmatch(text) else ""


def _filled(parameters: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in parameters.items() if value}


def _with_query(path: str, parameters: dict[str, str]) -> str:
    given = urlencode(_filled(parameters))
    return f"{path}?{given}" if given else path
