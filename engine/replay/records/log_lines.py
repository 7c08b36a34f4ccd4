"""Log lines as they are recorded. A log call never fails the workflow, whatever it is given."""

from __future__ import annotations

import json
from typing import Any

from engine.values.error_record import cut
from engine.values.serialization import encode

FIELDS_LIMIT = 16 * 1024


def log_line(
    level: str, message: str, fields: dict[str, Any], at_us: int
) -> tuple[str, str, str | None, int]:
    """Return a line that can be stored."""
    return level, text_of(message), _fields(fields), at_us


def not_kept(dropped: str) -> str:
    """Return the message about keys of an output that its type does not declare."""
    return f"Part of the output was not kept: {dropped}."


def text_of(message: object) -> str:
    """Return a message as text of a length that is recorded."""
    return cut(message if isinstance(message, str) else _shown(message))


def _fields(fields: dict[str, Any]) -> str | None:
    if not fields:
        return None
    try:
        return encode(fields, what="log fields", limit=FIELDS_LIMIT)
    except Exception:  # noqa: BLE001 - the line is kept whatever the fields are, with what can be shown of them
        return json.dumps({name: cut(_shown(value), 500) for name, value in list(fields.items())[:50]})


def _shown(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a user's __str__
        return f"(a {type(value).__qualname__})"
