"""Write characters that nobody sees, such as direction controls and zero-width spaces, as escapes of JSON."""

from __future__ import annotations

import json
import re
import unicodedata

_JOINERS = "\u200c\u200d"
_WRITTEN = "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2"  # in the same category, but signs that are seen
_CANDIDATE = re.compile(rf"[^\x20-\x7e\n\r\t{_WRITTEN}]")
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp"})


def visible(text: str) -> str:
    """Return text or JSON with its invisible characters as escapes.

    Joiners within words of other scripts and within emoji are left alone: they decide how their neighbours look.
    """
    return text if text.isascii() and text.isprintable() else _CANDIDATE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    one, text, at = found[0], found.string, found.start()
    if unicodedata.category(one) not in _INVISIBLE:
        return one
    if one in _JOINERS and at and not (text[at - 1 : at] + text[at + 1 : at + 2]).isascii():
        return one
    return json.dumps(one)[1:-1]
