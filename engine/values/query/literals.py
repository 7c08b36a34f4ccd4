"""Values in a search: words and texts in quotes, lists of them, patterns, numbers."""

from __future__ import annotations

import re
from decimal import Decimal

from engine.values.query.problems import NotATermError
from engine.values.query.terms import Literal, Pattern

LONGEST_VALUE = 200
MOST_VALUES = 20
_VALUE = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,"]+)', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?")


def literals(text: str, example: str) -> tuple[Literal, ...]:
    """Read a list with commas. Raises NotATermError; its message ends with the example."""
    found, at = list[Literal](), 0
    while True:
        match = _VALUE.match(text, at)
        if match is None:
            raise NotATermError(f"A value is missing. Write it like {example}.")
        found.append(_literal(match[1], match[2]))
        at = match.end()
        if at == len(text):
            break
        if text[at] != ",":
            raise NotATermError(f"Put a comma between two values, as in {example}.")
        at += 1
    if len(found) > MOST_VALUES:
        raise NotATermError(f"A term may have up to {MOST_VALUES} values; this one has {len(found)}.")
    return tuple(found)


def one_literal(text: str, example: str) -> Literal:
    """Read a single value."""
    found = literals(text, example)
    if len(found) > 1:
        raise NotATermError(f"Only one value can be compared. Write it like {example}.")
    return found[0]


def patterns(text: str, example: str) -> tuple[Pattern, ...]:
    """Read names; one that ends with * stands for all that begin so."""
    return tuple(Pattern(one.text, one.is_prefix) for one in literals(text, example))


def texts(text: str, example: str) -> tuple[str, ...]:
    """Read texts. A * at the end changes nothing where the beginning is enough."""
    return tuple(one.text for one in literals(text, example))


def _literal(quoted: str | None, word: str | None) -> Literal:
    text = re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) if quoted is not None else word or ""
    if len(text) > LONGEST_VALUE:
        raise NotATermError(f"A value may have up to {LONGEST_VALUE} characters; this one has {len(text)}.")
    if quoted is not None:
        return Literal(text, is_quoted=True)
    is_prefix = text.endswith("*")
    text = text.removesuffix("*")
    if "*" in text:
        raise NotATermError('A * may only stand at the end. Put the value in quotes if it has a "*" in it.')
    if not text:
        raise NotATermError("Add text before the *, as in order-*.")
    number = Decimal(text) if not is_prefix and _NUMBER.fullmatch(text) else None
    return Literal(text, number, is_prefix=is_prefix)
