"""Documents as JSON text. Needs no Django: a command that asks another Studio prints the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from engine.values.serialization import Unreadable
from engine.values.serialization.envelope import masked

Document = dict[str, Any]


def as_json(document: Mapping[str, Any], *, indent: int | None = 2) -> str:
    """Return a document as text. Secrets in it are masked."""
    return json.dumps(masked(document), indent=indent, ensure_ascii=False, default=plain)


def plain(value: object) -> object:
    """Return what stands in JSON for a value that JSON does not have."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Unreadable):  # something else wrote it
        return {"unreadable": value.reason}
    raise TypeError(f"{type(value).__qualname__} is not a JSON type")
