"""Make schemas plain: without the titles that pydantic derives from names, and only those that are used."""

from __future__ import annotations

import json
import re
from typing import Any

PREFIX = "#/components/schemas/"
_DATA = ("example", "examples", "enum", "const", "default")  # what holds values, not schemas


def only_used(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document without schemas that nothing refers to."""
    known: dict[str, Any] = document["components"].pop("schemas")
    used: dict[str, Any] = {}
    left = [document]
    while left:
        for name in re.findall(rf'"{PREFIX}(\w+)"', json.dumps(left.pop())):
            if name not in used:
                used[name] = known[name]
                left.append(known[name])
    document["components"] = {"schemas": dict(sorted(used.items())), **document["components"]}
    return document


def plain(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with plain schemas."""
    return {
        key: _plain(value, is_names=False) if key in ("paths", "components") else value
        for key, value in document.items()
    }


def _plain(value: Any, *, is_names: bool) -> Any:
    """Return a value of the document; `is_names` tells that the keys are names of properties."""
    if isinstance(value, list):
        return [_plain(one, is_names=False) for one in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, one in value.items():
        if is_names:
            found[key] = _plain(one, is_names=False)
        elif key in _DATA:
            if not (key == "default" and one is None):
                found[key] = one
        elif key != "title":
            found[key] = _plain(one, is_names=key == "properties")
    kinds = found.get("allOf")
    if isinstance(kinds, list) and len(kinds) == 1:  # a reference may have neighbours in 3.1
        found |= found.pop("allOf")[0]
    return found
