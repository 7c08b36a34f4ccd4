"""What a view saves: the text of a search, its order and its columns, as the address of the list has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from django.http import QueryDict

from studio.models import SavedView

NEWEST_FIRST = "-started"  # the order that addresses leave out


@dataclass(frozen=True, slots=True)
class Search:
    """A search as text. Equal searches show the same list."""

    query: str = ""
    sort: str = ""
    columns: str = ""

    @classmethod
    def of(cls, given: QueryDict) -> Self:
        """Read the parameters of an address, or the fields of a form."""
        sort = given.get("sort", "").strip()
        columns = (part.strip() for text in given.getlist("columns") for part in text.split(","))
        return cls(
            query=given.get("query", "").strip(),
            sort="" if sort == NEWEST_FIRST else sort,
            columns=",".join(dict.fromkeys(part for part in columns if part)),
        )

    @classmethod
    def of_text(cls, query: str, others: Mapping[str, str]) -> Self:
        """Return the search of a text, with the order and the columns of its address."""
        return cls(query, others.get("sort", ""), others.get("columns", ""))

    @classmethod
    def of_view(cls, view: SavedView) -> Self:
        return cls(view.query, view.sort, view.columns)

    @property
    def is_empty(self) -> bool:
        return not (self.query or self.sort or self.columns)

    @property
    def fields(self) -> dict[str, str]:
        return {"query": self.query, "sort": self.sort, "columns": self.columns}
