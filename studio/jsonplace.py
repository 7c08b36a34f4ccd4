"""Where in a JSON text a value stands, so that a wrong field is marked at its place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_ATOM = re.compile(r"[^\s,\]}]+")


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of the text, in characters."""

    start: int
    end: int


def find(text: str, path: Sequence[str]) -> Place:
    """Give the place of the value at `path`; where it is missing, the place of the nearest value around it.

    The text must be valid JSON. An object around a missing field is marked by its opening brace only: a whole
    document underlined tells nothing.
    """
    at = _skip(text, 0)
    for depth, part in enumerate(path):
        inner = _enter(text, at, part)
        if inner is None:
            return Place(at, at + 1) if depth < len(path) else Place(at, end_of(text, at))
        at = inner
    return Place(at, end_of(text, at))


def end_of(text: str, at: int) -> int:
    """Give the end of the value that starts at `at`."""
    first = text[at : at + 1]
    if first == '"':
        found = _STRING.match(text, at)
        return found.end() if found else len(text)
    if first not in ("{", "["):
        found = _ATOM.match(text, at)
        return found.end() if found else at
    depth = 0
    while at < len(text):
        char = text[at]
        if char == '"':
            at = end_of(text, at)
            continue
        depth += (char in "{[") - (char in "}]")
        at += 1
        if depth == 0:
            return at
    return len(text)


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Give line and column, both from 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def utf16(text: str, offset: int) -> int:
    """Give the offset as JavaScript counts."""
    return len(text[:offset].encode("utf-16-le", "surrogatepass")) // 2


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _enter(text: str, at: int, part: str) -> int | None:
    if text[at : at + 1] == "{":
        return next((value for key, value in _members(text, at) if key == part), None)
    if text[at : at + 1] == "[" and part.isdecimal():
        return next((value for index, value in enumerate(_items(text, at)) if index == int(part)), None)
    return None


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    at = _skip(text, at + 1)
    while text[at] != "}":
        key_end = end_of(text, at)
        key: str = json.loads(text[at:key_end])
        value = _skip(text, _skip(text, key_end) + 1)  # past the colon
        yield key, value
        at = _past_comma(text, end_of(text, value))


def _items(text: str, at: int) -> Iterator[int]:
    at = _skip(text, at + 1)
    while text[at] != "]":
        yield at
        at = _past_comma(text, end_of(text, at))


def _past_comma(text: str, at: int) -> int:
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at
