"""The limits of a storable JSON value, and the messages for values that exceed them."""

import json
from collections.abc import Sequence
from typing import TypeAlias

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64
MAX_TOKENS = 200_000  # brackets, commas, colons, keys and values
MAX_KEY = 256
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1

NUL = "The text contains a NUL character (U+0000), which the database cannot store."
SURROGATE = "The text contains half of a surrogate pair, which is not a character."
NOT_FINITE = "NaN and infinity are not valid JSON numbers."
OVERFLOW = "The number is too large for a floating-point number."
INTEGER = "The integer does not fit in 64 bits. Pass it as a string."
DEEP = f"The value is nested more than {MAX_DEPTH} levels deep."
TOKENS = f"The value has more than {MAX_TOKENS:,} parts (brackets, keys, values and separators)."
LONG_KEY = f"The key is longer than {MAX_KEY} characters."

Path: TypeAlias = Sequence[str | int]


def show_path(path: Path) -> str:
    """Write a path as `$.items[0]["a.b"]`: keys that are not plain words are quoted, long ones truncated."""
    if len(path) > 20:
        return f"{show_path(path[:10])}…{show_path(path[-5:])[1:]}"
    shown = "$"
    for part in path:
        if isinstance(part, int):
            shown += f"[{part}]"
        elif part.isidentifier() and part.isascii() and len(part) <= 64:
            shown += f".{part}"
        else:
            shown += f"[{json.dumps(part if len(part) <= 64 else part[:64] + '…')}]"
    return shown


def text_fault(text: str) -> tuple[str, str] | None:
    """Return the rule that a text breaks, as a code and a sentence; None for a valid text."""
    if "\x00" in text:
        return "nul_character", NUL
    try:
        text.encode()
    except UnicodeEncodeError:
        return "lone_surrogate", SURROGATE
    return None
