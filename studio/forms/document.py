"""A JSON document that people edit: numbers keep the digits that were typed, and what is not changed stays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

Path = tuple[str | int, ...]
MISSING = object()  # instead of a value: there is none at this path


class Number(float):
    """A number that Python would write otherwise, and its digits: `1.10` is not written as `1.1`, nor `-0` as `0`."""

    __slots__ = ("digits",)

    def __new__(cls, digits: str) -> Number:
        made = super().__new__(cls, digits)
        made.digits = digits
        return made

    digits: str


def parse(text: str) -> Any:
    """Return the document of a JSON text. Raises ValueError; whether it may be stored is for others to check."""
    return json.loads(text, parse_float=Number, parse_int=_integer)


def _integer(digits: str) -> int | Number:
    return Number(digits) if digits == "-0" else int(digits)


def dump(value: Any, depth: int = 0) -> str:
    """Return a document as text, with an indentation of two spaces."""
    if isinstance(value, Number):
        return value.digits
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner, end = "  " * (depth + 1), "  " * depth
    if isinstance(value, dict):
        names = (json.dumps(name, ensure_ascii=False) for name in value)
        lines = [f"{name}: {dump(item, depth + 1)}" for name, item in zip(names, value.values(), strict=True)]
        opening, closing = "{", "}"
    else:
        lines = [dump(item, depth + 1) for item in value]
        opening, closing = "[", "]"
    return f"{opening}\n{inner}" + f",\n{inner}".join(lines) + f"\n{end}{closing}"


def at(document: Any, path: Path) -> Any:
    """Return the value at a path, or MISSING."""
    for part in path:
        if isinstance(document, dict):
            document = document.get(part, MISSING)
        elif isinstance(document, list) and isinstance(part, int) and part < len(document):
            document = document[part]
        else:
            return MISSING
    return document


def put(document: Any, path: Path, value: Any) -> Any:
    """Return the document with a value set at a path; MISSING removes it. Objects on the way are made.

    Raises LookupError if a list has no such item, or a text or number is where an object would have to be.
    """
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(document, list):
        if not isinstance(head, int) or not 0 <= head < len(document):
            raise LookupError(f"The list has no item {head}.")
        inner = put(document[head], rest, value)
        middle = [] if inner is MISSING else [inner]
        return [*document[:head], *middle, *document[head + 1 :]]
    if document is not MISSING and document is not None and not isinstance(document, dict):
        raise LookupError(f"There is no object to put {head} into.")
    members = dict(document) if isinstance(document, dict) else {}
    inner = put(members.get(str(head), MISSING), rest, value)
    if inner is MISSING:
        members.pop(str(head), None)
    else:
        members[str(head)] = inner
    return members


def renamed(members: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Return an object with other names, in the same order."""
    return {names.get(name, name): value for name, value in members.items()}


def pointer(path: Sequence[str | int]) -> str:
    """Return a path as a JSON pointer (RFC 6901). Names of inputs contain it."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def location(path: Sequence[str | int]) -> str:
    """Return a path as problems give it: `items/0/quantity`."""
    return "/".join(map(str, path))
