"""The terms of a search as chips, each in words and with a link that drops it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.status.sentences import bidi
from engine.values.query.terms import Moments, Query, Statuses, Term, Took
from engine.values.query.wording import in_words
from engine.values.shown import GROUPS

_ROUND = re.compile(r"(\d [hm]) 00 [ms]\b")  # in a duration: `2 h 00 m`
LONGEST_SHOWN = 200
LONGEST_WRONG = 60
LONGEST_MESSAGE = 600


@dataclass(frozen=True, slots=True)
class Chip:
    """A term: in words, as it was written, and the address without it. `message` says what is wrong with it."""

    words: str
    text: str
    without: str
    message: str = ""


def chips_of(query: Query, address: Callable[[str], str]) -> list[Chip]:
    """Return the terms in the order of the text. `address` returns the address of another search."""
    terms = [
        (term.start, Chip(words_of(term), term.text, address(query.without(term)))) for term in query.terms
    ]
    wrong = [
        (
            one.start,
            Chip(
                _short(one.text, LONGEST_WRONG),
                one.text,
                address(query.without(one)),
                _short(one.message, LONGEST_MESSAGE),
            ),
        )
        for one in query.problems
    ]
    return [chip for _, chip in sorted([*terms, *wrong], key=lambda pair: pair[0])]


def words_of(term: Term) -> str:
    """Return what a term asks for in a few words: `status is open`, `not: tag is eu`."""
    said = in_words(term).removeprefix("not: ")
    if isinstance(term.condition, Statuses):
        said = f"status is {_grouped(term.condition.names)}"
    if isinstance(term.condition, Moments | Took):
        said = _ROUND.sub(r"\1", said)
    for beginning in ("the ", "it ", "its "):
        said = said.removeprefix(beginning)
    return _short(f"not: {said}" if term.is_negated else said)


def _grouped(names: Sequence[str]) -> str:
    """Return statuses as a list, with the name of a group instead of all that it has."""
    groups = [group for group, of in GROUPS.items() if set(of) <= set(names)]
    others = [name for name in names if not any(name in GROUPS[group] for group in groups)]
    *most, last = *groups, *others
    return f"{', '.join(most)} or {last}" if most else last


def _short(text: str, longest: int = LONGEST_SHOWN) -> str:
    return bidi.isolated(text if len(text) <= longest else f"{text[: longest - 1]}…")
