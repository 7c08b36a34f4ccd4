"""Never send typed secrets back to the page: a mask replaces them, to be typed again; or leave them out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.values.secret_places import secret_places
from engine.values.serialization.envelope import MASK
from engine.values.serialization.secret_schema import holds_secrets
from studio.forms import schema
from studio.forms.checked import Checked, Problem
from studio.forms.document import Path
from studio.forms.json_text import Place, finder, read_text

_decoder = json.JSONDecoder()
# Accept a missing comma at the end of a line.
_AFTER_A_VALUE = re.compile(r"""\s*(?:[,}\]]|\Z)|\s*\n[ \t]*\"""")


def hidden(text: str, root: Mapping[str, Any] | None) -> str:
    """Return a typed JSON text with a mask in place of each secret in its schema."""
    if root is None or not holds_secrets(root):
        return text
    pieces, end = [], 0
    for place in sorted(_places(text, root), key=lambda place: (place.start, -place.end)):
        if place.start >= end:  # else it is inside another secret
            pieces += [text[end : place.start], f'"{MASK}"']
            end = place.end
    return "".join([*pieces, text[end:]])


def without(value: Any, places: Sequence[Path], *, keeps_items: bool = False) -> Any:
    """Return a copy without what is at these paths, in one pass: a list may hold thousands of secrets.

    `keeps_items`: an item of a list is replaced by a mask, so that those after it keep their places.
    """
    inner: dict[str | int, list[Path]] = {}
    for head, *rest in places:
        inner.setdefault(head, []).append(tuple(rest))
    if not inner:
        return value
    is_list = isinstance(value, list)
    parts = enumerate(value) if is_list else value.items()
    left = {
        key: MASK if () in inner.get(key, ()) else without(item, inner.get(key, ()), keeps_items=keeps_items)
        for key, item in parts
        if () not in inner.get(key, ()) or (is_list and keeps_items)
    }
    return list(left.values()) if is_list else left


def together(masked: Checked, checked: Checked) -> tuple[Problem, ...]:
    """Return the problems of the masked text with their places, and other problems of the typed text without."""
    said = {(problem.field, problem.path, problem.message) for problem in masked.problems}
    others = [one for one in checked.problems if (one.field, one.path, one.message) not in said]
    return (*masked.problems, *(Problem(one.field, one.message, one.path) for one in others))


def _places(text: str, root: Mapping[str, Any]) -> list[Place]:
    read = read_text(text, "params", is_optional=True)
    if read.is_good:
        found = list(secret_places(read.value, root)) if text.strip() else []
        find = finder(text) if found else None
        return [find([str(part) for part in path]) for path in found] if find else []
    return list(_by_name(text, root))


def _by_name(text: str, root: Mapping[str, Any]) -> Iterator[Place]:
    """Find possible secrets in a text that is not valid JSON: what follows a secret's name, or the whole text."""
    names = _names(root, root)
    is_document = text.lstrip().startswith(("{", "["))
    if not names or not is_document or schema.is_secret_inside(root, root):
        yield Place(0, len(text))
        return
    reached = 0
    for name in _after_any(names).finditer(text):
        if name.start() >= reached:
            reached = _end_of_secret(text, name.end())
            yield Place(name.end(), reached)


def _after_any(names: set[str]) -> re.Pattern[str]:
    """Match a name up to its value. Quotes and colon may be wrong or missing."""
    spellings = names | {json.dumps(name)[1:-1] for name in names}
    longest_first = sorted(map(re.escape, spellings), key=len, reverse=True)
    return re.compile(rf"""(?<!\w)["']?(?:{"|".join(longest_first)})(?!\w)["']?\s*[:=]?\s*""")


def _end_of_secret(text: str, start: int) -> int:
    """Return the end of a JSON value, or the end of the text if the value may be longer."""
    try:
        _, end = _decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return len(text)
    return end if _AFTER_A_VALUE.match(text, end) else len(text)


def _names(root: Mapping[str, Any], node: Any) -> set[str]:
    """Return the names of all fields whose value is a secret, or a list or union of secrets."""
    if isinstance(node, list):
        return {name for item in node for name in _names(root, item)}
    if not isinstance(node, Mapping):
        return set()
    fields = node.get("properties") or {}
    own = {name for name, field in fields.items() if schema.is_secret_inside(root, field)}
    return own.union(*(_names(root, part) for part in node.values()))
