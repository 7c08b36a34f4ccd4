"""The prefix of a JSON text, made a whole value: what was cut off is left out, what was open is closed."""

from __future__ import annotations

import re

_HALF = re.compile(r"(\\u[dD][89abAB][0-9a-fA-F]{2})?\\*$")
_CLOSING = {"{": "}", "[": "]"}


def closed(text: str) -> tuple[str, int] | None:
    """Give the text up to its last whole value, closed, and how many containers were open there.

    A string that is cut keeps its beginning. None where the text holds no container.
    """
    stack: list[str] = []
    safe: tuple[int, tuple[str, ...]] | None = None
    before, at = "", 0
    while at < len(text):
        sign = text[at]
        if sign == '"':
            end = _end_of_string(text, at)
            if end is None:
                return (
                    _with_string(text[at:], text[:at], stack)
                    if _is_value(before, stack)
                    else _cut(text, safe)
                )
            at = end
            continue
        if sign in "{[":
            stack.append(sign)
            safe = at + 1, tuple(stack)
        elif sign in "}]" and stack:
            stack.pop()
            safe = at + 1, tuple(stack)
        elif sign == ",":
            safe = at, tuple(stack)
        if not sign.isspace():
            before = sign
        at += 1
    return _cut(text, safe)


def _end_of_string(text: str, start: int) -> int | None:
    at = start + 1
    while True:
        quote, escape = text.find('"', at), text.find("\\", at)
        if quote < 0:
            return None
        if escape < 0 or quote < escape:
            return quote + 1
        at = escape + 2


def _is_value(before: str, stack: list[str]) -> bool:
    return bool(stack) and (stack[-1] == "[" or before == ":")


def _with_string(string: str, head: str, stack: list[str]) -> tuple[str, int]:
    # What may be the half of an escape goes: a pair of surrogates, the longest, has twelve characters.
    escape = string.find("\\", max(1, len(string) - 12))
    whole = _HALF.sub("", string[:escape] if escape > 0 else string)
    return f'{head}{whole}…"{_closing(stack)}', len(stack)


def _cut(text: str, safe: tuple[int, tuple[str, ...]] | None) -> tuple[str, int] | None:
    if safe is None:
        return None
    at, stack = safe
    return text[:at] + _closing(stack), len(stack)


def _closing(stack: list[str] | tuple[str, ...]) -> str:
    return "".join(_CLOSING[sign] for sign in reversed(stack))
