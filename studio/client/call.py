"""A request as data, and how its answer is read: what the sync and the async client have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from studio.client.times import read_times

T = TypeVar("T")

Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request below /api/v1. `key` is the Idempotency-Key of a POST."""

    method: str
    path: str
    query: Query = ()
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    has_times: bool = True  # and is a document of ours, not a value of a workflow
    part: str | None = None  # the key of the answer that is wanted
    has_etag: bool = False  # which is added to the answer, as `etag`

    def read(self, answer: Any, etag: str = "") -> T:
        """Return the answer as callers get it."""
        found = read_times(answer) if self.has_times else answer
        if self.has_etag:
            found["etag"] = etag
        wanted: T = found if self.part is None else found[self.part]
        return wanted

    @property
    def may_be_repeated(self) -> bool:
        """Return whether sending it twice does the same as once: a POST has an Idempotency-Key."""
        return self.method in ("GET", "POST")


@dataclass(frozen=True, slots=True)
class Pages(Generic[T]):
    """A list that is read page by page: `page` makes the call for a cursor, `key` names the rows in its answer."""

    page: Callable[[str | None], Call[Any]]
    key: str


def path_of(*parts: str | int) -> str:
    """Return the path of an address, each part quoted."""
    return "".join(f"/{quote(str(part), safe='')}" for part in parts)


def query_of(**given: Any) -> Query:
    """Return a query without what is None; a list gives several values."""
    pairs: list[tuple[str, str]] = []
    for name, value in given.items():
        several = value if isinstance(value, list | tuple) else (value,)
        pairs += [(name, _text(one)) for one in several if one is not None]
    return tuple(pairs)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
