"""The address of the list: what is searched for, its order, its columns and its place. Nothing else holds state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from engine.values.query.fields import EXAMPLES
from engine.values.query.order import NEWEST_FIRST, Sort, is_place
from engine.values.query.parsing import parse
from engine.values.query.terms import Query
from studio.frame.addresses import ignored
from studio.instances.columns import Path, paths_of

TIMES = ("started", "finished", "duration")
LONGEST_SLUG = 80
LONGEST_TYPED = 4_000  # characters that the field shows of a search that is too long
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_COMPARED = re.compile(r"(?:[<>]=?|!=|=)?[A-Za-z0-9:.+-]+")  # of times: `<2h`, `2026-11-27`
_AGE = re.compile(r"[0-9.]+ ?[a-z]+", re.IGNORECASE)
# Parameters that become terms of the search: its fields, and those of earlier addresses.
TERMS = {**{name: name for name in EXAMPLES}, "q": "id", "since": "started"}


@dataclass(frozen=True, slots=True)
class ListAddress:
    """What an address asks for. `ignored` are the parts of it that have no effect."""

    query: Query
    typed: str = ""
    sort: Sort = NEWEST_FIRST
    columns: tuple[Path, ...] = ()
    before: str = ""
    after: str = ""
    view: str = ""  # the slug of the view from which the search began
    ignored: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: QueryDict) -> Self:
        """Read it. Parameters named like fields become terms of the search; an invalid term is a problem."""
        typed = _typed(given)
        columns, wrong = paths_of(given.getlist("columns"))
        text = _sort(given)
        sort = Sort.of(text) if text else NEWEST_FIRST
        places = {name: given.get(name, "") for name in ("before", "after")}
        found = {"sort": text} | {name: one for name, one in places.items() if is_place(one, sort)}
        understood = {"query", "view", *TERMS, *(name for name, value in found.items() if value)}
        others = given.copy()
        others.pop("columns", None)
        return cls(
            query=parse(typed),
            typed=typed[:LONGEST_TYPED],
            sort=sort,
            columns=columns,
            before=found.get("before", ""),
            after=found.get("after", ""),
            view=given.get("view", "")[:LONGEST_SLUG],
            ignored=(*ignored(others, understood), *(f"columns={part}"[:80] for part in wrong)),
        )

    @property
    def kept(self) -> dict[str, str]:
        """Everything but the search and the place, without what is usual."""
        columns = ",".join(".".join(path) for path in self.columns)
        given = {
            "sort": str(self.sort) if self.sort != NEWEST_FIRST else "",
            "columns": columns,
            "view": self.view,
        }
        return {name: value for name, value in given.items() if value}

    @property
    def parameters(self) -> dict[str, str]:
        """The whole address, without the place."""
        return {"query": self.query.text, **self.kept}

    def url(self, **changes: str) -> str:
        """Return the address with changes, at its first page unless they name another."""
        return address_of(self.parameters | changes)


def _sort(given: QueryDict) -> str:
    """Return the order of an address; empty if it has none, or an unknown one."""
    text = given.get("sort", "")
    try:
        Sort.of(text)
    except ValueError:
        return ""
    return text


def _typed(given: QueryDict) -> str:
    terms = [given.get("query", "").strip()]
    for name, field in TERMS.items():
        value = given.get(name, "").strip()
        if name == "since" and value:
            value = f"<{value.replace(' ', '')}" if _AGE.fullmatch(value) else f">={value}"
        if value:
            is_compared = field in TIMES and _COMPARED.fullmatch(value)
            terms.append(f"{field}:{value}" if is_compared else term_of(field, value))
    return " ".join(term for term in terms if term)


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def term_of(field: str, value: str) -> str:
    """Return the term of a search for exactly this value."""
    return f"{field}:{value if _PLAIN.fullmatch(value) else _quoted(value)}"


def list_address(*, workflow: str = "", status: str = "", by: str = "") -> str:
    """Return the address of the list of a workflow's instances, of those in a shown status, or those a user started."""
    given = {"workflow": workflow, "status": status, "by": by}
    return address_of({"query": " ".join(term_of(name, value) for name, value in given.items() if value)})


def address_of(parameters: Mapping[str, str]) -> str:
    """Return the address of the list with these parameters, without the empty ones."""
    is_whole = bool(parameters.get("view"))  # an address with a search says all, also that it is empty
    shown = {name: value for name, value in parameters.items() if value or (is_whole and name == "query")}
    given = urlencode(shown, safe=":,*")
    return f"{reverse('studio:instances')}{f'?{given}' if given else ''}"
