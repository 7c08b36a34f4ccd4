"""Right-to-left text, or text with direction controls, inside a left-to-right sentence.

The rules are those of Unicode's UAX #9. An isolate counts as one word of the sentence, whatever it contains.
"""

from __future__ import annotations

import re
import unicodedata

_OPEN, _CLOSE = "\u2068", "\u2069"
_OPENING = frozenset("\u2066\u2067\u2068")
_TURNS = frozenset({"R", "AL", "AN", "RLE", "RLO", "LRE", "LRO", "PDF", "RLI", "LRI", "FSI", "PDI"})
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)("|\\?$)', re.DOTALL)


def isolated(text: str) -> str:
    """Return `text` isolated, so that it does not reorder the words around it; unchanged if nothing in it could."""
    return f"{_OPEN}{_balanced(text)}{_CLOSE}" if _may_turn(text) else text


def isolated_strings(json: str) -> str:
    """Return JSON, or its beginning, with each string in it isolated."""
    if not _may_turn(json):
        return json
    return _STRING.sub(lambda found: f'"{isolated(found[1])}{found[2]}', json)


def _may_turn(text: str) -> bool:
    return not text.isascii() and any(unicodedata.bidirectional(one) in _TURNS for one in text)


def _balanced(text: str) -> str:
    """Remove what would close an isolate around the text, and close what the text leaves open."""
    kept, depth = [], 0
    for one in text:
        if one == _CLOSE and not depth:
            continue
        depth += (one in _OPENING) - (one == _CLOSE)
        kept.append(one)
    return "".join(kept) + _CLOSE * depth
