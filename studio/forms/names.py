"""The rule for names that people give to what they save: saved views, templates of starts."""

from __future__ import annotations

import unicodedata

# Controls, halves of surrogate pairs, ends of lines and paragraphs.
_UNNAMEABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})


def is_name(text: str, longest: int) -> bool:
    """Return whether it is short, visible and on one line. Pages isolate its direction."""
    is_visible = any(one.isprintable() and not one.isspace() for one in text)
    is_one_line = not any(unicodedata.category(one) in _UNNAMEABLE for one in text)
    return is_visible and is_one_line and len(text) <= longest


def rule_of_names(longest: int) -> str:
    return f"A name has 1 to {longest} characters, on one line, without control characters."
