"""The code of a handler, line by line, with the classes of its tokens."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from studio.display.invisible import visible

WORDS = frozenset(keyword.kwlist) | {"match", "case"}
TEXTS = {"STRING", "FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END"}
LONGEST = 400  # characters of a line


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line: `html` is its escaped text with the classes k, t and c for keywords, texts and comments."""

    number: int
    html: str
    text: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The lines of some functions. `others` are the numbers at which a function other than the first begins."""

    lines: tuple[CodeLine, ...] = ()
    others: frozenset[int] = field(default_factory=frozenset)


def listing(text: str, spans: Sequence[tuple[int, int]]) -> Listing:
    """Return the lines of these functions of a module, in their order."""
    lines = text.split("\n")  # as Python counts them: a form feed or U+2028 ends no line
    colored: dict[int, list[tuple[int, int, str]]] = {}
    for first, last in spans:
        for number, start, end, look in _tokens(lines[first - 1 : last], first):
            colored.setdefault(number, []).append((start, end, look))
    found = [
        CodeLine(number, _html(lines[number - 1], colored.get(number, ())), lines[number - 1])
        for first, last in spans
        for number in range(first, min(last, len(lines)) + 1)
    ]
    return Listing(tuple(found), frozenset(first for first, _ in spans[1:]))


def _tokens(lines: Sequence[str], first: int) -> Iterator[tuple[int, int, int, str]]:
    """Yield line, start, end and class of each part that has a color."""
    read = io.StringIO("\n".join([*lines, ""])).readline
    try:
        for token in tokenize.generate_tokens(read):
            look = _look(token)
            if look:
                yield from _per_line(token, first - 1, look, lines)
    except (tokenize.TokenError, SyntaxError):
        return  # the rest is plain


def _look(token: tokenize.TokenInfo) -> str:
    name = tokenize.tok_name[token.type]
    if name == "COMMENT":
        return "c"
    if name in TEXTS:
        return "t"
    return "k" if name == "NAME" and token.string in WORDS else ""


def _per_line(
    token: tokenize.TokenInfo, before: int, look: str, lines: Sequence[str]
) -> Iterator[tuple[int, int, int, str]]:
    (top, start), (bottom, end) = token.start, token.end
    for at in range(top, bottom + 1):
        length = len(lines[at - 1]) if at <= len(lines) else 0
        yield at + before, start if at == top else 0, end if at == bottom else length, look


def _html(line: str, colored: Sequence[tuple[int, int, str]]) -> str:
    text, at = "", 0
    line = line[:LONGEST]
    for start, end, look in colored:
        if start < at or end <= start:
            continue
        text += f'{_shown(line[at:start])}<span class="{look}">{_shown(line[start:end])}</span>'
        at = end
    return text + _shown(line[at:])


def _shown(text: str) -> str:
    """Return code as HTML. What turns the direction of text must not change how it reads."""
    return escape(visible(text))
