"""What a person prefers to see: theme, density of rows, time zone. Cookies keep it in the browser, so that the server
draws the first page by it. A page asks no database for that, and neither does a page about an error."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import Self
from zoneinfo import available_timezones

from django.http import HttpRequest, HttpResponse, QueryDict

from engine.status.sentences.bidi import isolated

THEMES = ("system", "light", "dark")
DENSITIES = ("normal", "compact", "comfortable")
NAMES = ("theme", "density", "zone")
YEAR_S = 365 * 24 * 3600
SHOWN = 60  # characters of a value that is refused


@cache
def regions() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the zones of places that this machine knows, such as Europe/Berlin, by the part before the stroke."""
    names = sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return tuple((region, tuple(zones)) for region, zones in groupby(names, lambda name: name.split("/")[0]))


@cache
def zones() -> frozenset[str]:
    """Return what `zone` may be; empty is the zone of the browser."""
    return frozenset({"", "UTC", *(name for _, names in regions() for name in names)})


@dataclass(frozen=True, slots=True)
class Preferences:
    theme: str = THEMES[0]
    density: str = DENSITIES[0]
    zone: str = ""
    problems: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, request: HttpRequest) -> Self:
        """Return what the browser keeps. A value that cannot be chosen counts as none."""
        kept = {name: request.COOKIES.get(f"studio-{name}", "") for name in NAMES}
        good = {name: value if value in _choices(name) else "" for name, value in kept.items()}
        return cls(good["theme"] or THEMES[0], good["density"] or DENSITIES[0], good["zone"])

    @classmethod
    def typed(cls, given: QueryDict) -> Self:
        """Return what a form says, with the problem of each value that cannot be chosen."""
        wanted = {name: given.get(name, "") for name in NAMES}
        wrong = {name: value for name, value in wanted.items() if value not in _choices(name)}
        problems = {name: _problem(name, value) for name, value in wrong.items()}
        return cls(wanted["theme"], wanted["density"], wanted["zone"], problems)


def keep(request: HttpRequest, response: HttpResponse, **wanted: str) -> None:
    """Let the browser keep values that were chosen."""
    for name, value in wanted.items():
        response.set_cookie(
            f"studio-{name}",
            value,
            max_age=YEAR_S,
            samesite="Lax",
            httponly=True,
            secure=request.is_secure(),
        )


def _choices(name: str) -> Collection[str]:
    if name == "zone":
        return zones()
    return THEMES if name == "theme" else DENSITIES


def _problem(name: str, value: str) -> str:
    shown = isolated(value[:SHOWN]) or "Nothing"
    if name == "zone":
        return (
            f"{shown} is no time zone that this server knows. Choose one of the list, such as Europe/Berlin."
        )
    return f"{shown} is no {name}. Choose {', '.join(_choices(name))}."
