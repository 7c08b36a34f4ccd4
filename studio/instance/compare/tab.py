"""The tab that compares an instance with another run. It is read once: it does not follow what still runs."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from studio.display.rendering import render_to_string
from studio.frame.addresses import cursor
from studio.frame.pieces import Piece
from studio.instance.compare.choosing import Asked, candidates_of, choose
from studio.instance.compare.comparison import SHORT, Comparison
from studio.instance.compare.side import MOST_STEPS, OUTPUTS, Side, read_side
from studio.instance.compare.summary import summary
from studio.instance.page import InstancePage
from studio.instance.tab import Context, Drawn

TEMPLATE = "studio/instance/compare/tab.html"
TAKES = ("with", "with_generation", "show", "page")
PAGE = 200  # steps
PLAIN: Mapping[str, str] = {}


def draw(page: InstancePage, context: Context) -> Drawn:
    """Render the comparison. It stays as it was read, while the status line above it goes on."""
    shown = {**context, **_read(page, context["given"])}
    return Drawn({"compare": Piece(render_to_string("studio/instance/compare/compare.html", shown))})


def _read(page: InstancePage, given: Mapping[str, str]) -> Mapping[str, object]:
    asked, candidates = Asked.of(given), candidates_of(page.instance)
    chosen = choose(page, asked, candidates)
    shown: dict[str, object] = {
        "asked": asked,
        "candidates": candidates,
        "chosen": chosen,
        "generations": _generations(page),
    }
    if chosen.side is None:
        return shown
    here = read_side(page.instance.workflow, page.instance.id, page.generations.shown)
    return {**shown, **_compared(page, Comparison(here, chosen.side), given)}


def _compared(page: InstancePage, found: Comparison, given: Mapping[str, str]) -> Mapping[str, object]:
    shows_all = len(found.lines) <= SHORT or given.get("show") == "all"
    lines = found.lines if shows_all else found.differing
    number = min(max(cursor(given.get("page", "")) or 1, 1), max(-(-len(lines) // PAGE), 1))
    start = (number - 1) * PAGE
    return {
        "compared": found,
        "said": summary(found),
        "lines": lines[start : start + PAGE],
        "shows_all": shows_all,
        "is_short": len(found.lines) <= SHORT,
        "differing_address": _address(page, found.there),
        "all_address": _address(page, found.there, {"show": "all"}),
        "newer_address": _page_address(page, found, number - 1, shows_all=shows_all) if number > 1 else "",
        "older_address": _page_address(page, found, number + 1, shows_all=shows_all)
        if start + PAGE < len(lines)
        else "",
        "outputs_compared": OUTPUTS if len(found.lines) > OUTPUTS else 0,
        "steps_compared": MOST_STEPS if found.here.has_more_steps or found.there.has_more_steps else 0,
    }


def _page_address(page: InstancePage, found: Comparison, number: int, *, shows_all: bool) -> str:
    return _address(page, found.there, {"show": "all" if shows_all else "", "page": str(number)})


def _address(page: InstancePage, there: Side, given: Mapping[str, str] = PLAIN) -> str:
    """Return the address of this comparison within the page of the instance."""
    generation = str(there.generation) if there.snapped.generations.newest > 1 else ""
    fields = {"tab": "compare", "with": there.instance.id, "with_generation": generation, **given}
    return f"?{page.place}" + urlencode({name: value for name, value in fields.items() if value})


def _generations(page: InstancePage) -> list[tuple[int, str, str]]:
    """Return the other generations: number, status, and the address of the comparison with each."""
    those = page.generations
    numbers = [(one.number, one.status) for one in those.earlier]
    if those.is_past:
        numbers = [(those.newest, "now"), *numbers]
    found = []
    for number, status in numbers:
        if number != those.shown:
            fields = {"tab": "compare", "with": page.instance.id, "with_generation": str(number)}
            found.append((number, status, f"?{page.place}{urlencode(fields)}"))
    return found
