"""Isolate text in pages by elements instead of characters: who copies a value from a page copies nothing else."""

from __future__ import annotations

import re

_OPEN, _CLOSE = "\u2068", "\u2069"
_OPENING = frozenset("\u2066\u2067\u2068")
# Where an element cannot be, or already is.
_SKIPPED = re.compile(
    r"<(textarea|title|option|script|style|bdi)\b[^>]*>.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE
)


def with_elements(html: str) -> str:
    """Return HTML with each isolate in its text, from U+2068 to U+2069, as a `bdi` element."""
    if _OPEN not in html:
        return html
    parts, end = [], 0
    for found in _SKIPPED.finditer(html):
        parts += [_replaced(html[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, _replaced(html[end:])])


def _replaced(text: str) -> str:
    """Replace the outermost isolates. Those inside are part of a value; one without an end stays."""
    kept, end = [], 0
    while (start := text.find(_OPEN, end)) >= 0:
        close = _close_of(text, start)
        if close < 0:
            break
        kept += [text[end:start], "<bdi>", text[start + 1 : close], "</bdi>"]
        end = close + 1
    return "".join([*kept, text[end:]])


def _close_of(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in _OPENING) - (text[at] == _CLOSE)
        if depth == 0:
            return at
    return -1
