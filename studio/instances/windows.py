"""The time window of a search: the term that says how long ago an instance may have started."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from engine.values.durations import format_duration
from engine.values.query.terms import Moments, Query

WINDOWS = (
    ("All time", "", None),
    ("Last hour", "started:<1h", timedelta(hours=1)),
    ("Last 24 h", "started:<24h", timedelta(days=1)),
    ("Last 7 days", "started:<7d", timedelta(days=7)),
    ("Last 30 days", "started:<30d", timedelta(days=30)),
)


@dataclass(frozen=True, slots=True)
class Window:
    """A choice of the menu: its name, the address of the search in it, and whether that is the present one."""

    name: str
    address: str
    is_chosen: bool


def windows_of(query: Query, address: Callable[[str], str]) -> tuple[str, list[Window]]:
    """Return the name of the present window, and all choices."""
    name, _ = _present(query)
    choices = [
        Window(one, address(query.replaced("started", term)), is_chosen=one == name)
        for one, term, _ in WINDOWS
    ]
    return name, choices


def wider(query: Query, address: Callable[[str], str]) -> Window | None:
    """Return the next larger window; None if the search has none that could be larger."""
    _, span = _present(query)
    if span is None:
        return None
    for one, term, other in (*WINDOWS[1:], WINDOWS[0]):
        if other is None or other > span:
            name = one.removeprefix("Last ").lower()
            return Window(name, address(query.replaced("started", term)), is_chosen=False)
    return None


def _short(span: timedelta) -> str:
    return format_duration(span).removesuffix(" 00 m").removesuffix(" 00 s")


def _present(query: Query) -> tuple[str, timedelta | None]:
    terms = [
        term.condition for term in query.terms if isinstance(term.condition, Moments) and not term.is_negated
    ]
    started = [moments for moments in terms if moments.field == "started"]
    if not started:
        return WINDOWS[0][0], None
    (first, *others) = started
    span = first.after.value if first.after else None
    if others or first.before or not isinstance(span, timedelta):
        return "Other times", None
    named = next((name for name, _, other in WINDOWS if other == span), f"Last {_short(span)}")
    return named, span
