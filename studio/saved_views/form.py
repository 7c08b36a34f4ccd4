"""The form of a new view: what was typed, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from django.http import QueryDict

from studio.saved_views.search import Search

SHARED, PERSONAL = "shared", "personal"


@dataclass(frozen=True, slots=True)
class Typed:
    """What was typed, and the problem of each field."""

    name: str = ""
    search: Search = field(default_factory=Search)
    is_shared: bool = False
    problems: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: QueryDict, problems: dict[str, str] | None = None) -> Self:
        return cls(
            name=given.get("name", ""),
            search=Search.of(given),
            is_shared=given.get("for") == SHARED,
            problems=problems or {},
        )
