"""Read the text of a search: split it into terms, and read each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from engine.values.errors import InvalidQueryError
from engine.values.query.fields import NotATermError, condition_of, free_text
from engine.values.query.terms import Problem, Query, Term

LONGEST = 2_000  # characters of a search
MOST_TERMS = 20

# Text in quotes may have spaces, and \" for a quote.
_WORD = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^\s"])+', re.DOTALL)
# Controls, and halves of surrogate pairs: PostgreSQL stores some of them nowhere.
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    end: int
    is_closed: bool = True


def parse(text: str) -> Query:
    """Read a search. What cannot be understood becomes a problem, never ignored; this raises nothing."""
    if len(text) > LONGEST:
        shown = f"{text[:40]}…"
        rule = f"A search may have up to {LONGEST:,} characters; this one has {len(text):,}."
        return Query(shown, problems=(Problem(shown, rule, 0, len(shown)),))
    terms, problems = list[Term](), list[Problem]()
    for word in _words(text):
        try:
            terms.append(_term(word))
        except NotATermError as problem:
            problems.append(Problem(word.text, str(problem), word.start, word.end))
    if len(terms) > MOST_TERMS:
        rule = f"A search may have up to {MOST_TERMS} terms; this one has {len(terms)}."
        problems += [Problem(term.text, rule, term.start, term.end) for term in terms[MOST_TERMS:]]
        del terms[MOST_TERMS:]
    return Query(text, tuple(terms), tuple(problems))


def parsed(text: str) -> Query:
    """Read a search. Raises InvalidQueryError if a term cannot be understood."""
    found = parse(text)
    if found.problems:
        raise InvalidQueryError([(one.text, one.message) for one in found.problems])
    return found


def _words(text: str) -> Iterator[_Word]:
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        found = _WORD.match(text, at)
        end = found.end() if found else at
        if end < len(text) and not text[end].isspace():  # a quote that nothing closes
            yield _Word(text[at:].rstrip(), at, len(text.rstrip()), is_closed=False)
            return
        yield _Word(text[at:end], at, end)
        at = end


def _term(word: _Word) -> Term:
    unreadable = _UNREADABLE.search(word.text)
    if unreadable:
        raise NotATermError(f"The character U+{ord(unreadable[0]):04X} cannot be searched for. Remove it.")
    if not word.is_closed:
        raise NotATermError('A quote is not closed. Add a second ", or write \\" for a quote in a text.')
    is_negated = word.text.startswith("-")
    rest = word.text[1:] if is_negated else word.text
    if not rest:
        raise NotATermError('"-" excludes what follows it. Write a term directly after it: -status:complete.')
    condition = condition_of(rest) or free_text(rest)
    return Term(condition, is_negated, word.text, word.start, word.end)
